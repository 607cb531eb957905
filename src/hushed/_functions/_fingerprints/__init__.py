"""Whether a function is still what it was: its code, and whatever its code uses."""

from hushed._functions._fingerprints.looks import (
    Look,
    content,
    identity,
    list_changes,
    look,
    same_function,
    strangers,
)

__all__ = ["Look", "content", "identity", "list_changes", "look", "same_function", "strangers"]
