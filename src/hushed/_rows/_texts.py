"""Public texts as values of the first type that suits them all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hushed._ground.numerals import read_number


def read_texts(texts: Sequence[str]) -> list[Any]:
    """Read public texts as the first type that suits them all; an empty one is missing."""
    for read in (_read_whole, read_bool, _read_decimal):
        try:
            return [read(text.strip()) if text.strip() else None for text in texts]
        except ValueError:
            continue
    return [text if text.strip() else None for text in texts]


def _read_whole(text: str) -> int:
    if not re.fullmatch(r"-?(0|[1-9][0-9]{0,18})", text):  # with a leading zero it is a code
        raise ValueError
    return int(text)


def read_bool(text: str) -> bool:
    """Read true or false, in any case of letters."""
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _read_decimal(text: str) -> float:
    if re.fullmatch(r"[-+]?0[0-9_].*", text):
        raise ValueError
    return read_number(text)
