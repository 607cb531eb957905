"""Whether a function is still what it was: its code, and whatever its code uses."""

from hushed._functions._fingerprints.looks import (
    Look,
    combine,
    content,
    identity,
    list_changes,
    list_unseen,
    look,
    look_at_kinds,
    same_function,
    strangers,
)

__all__ = [
    "Look",
    "combine",
    "content",
    "identity",
    "list_changes",
    "list_unseen",
    "look",
    "look_at_kinds",
    "same_function",
    "strangers",
]
