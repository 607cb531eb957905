"""Files of answers and certificates, which a command takes."""

from __future__ import annotations

import json
from pathlib import Path

from hushed._ground.printing import name_missing
from hushed.errors import NotFound, ParameterError


def read_record(path: Path, takes: str) -> str:
    """Read a file of JSON; what is none is refused with what the command takes."""
    if not path.is_file():
        missing = name_missing(path)
        raise NotFound(f"there is no file {missing}{'' if missing.endswith('?') else '.'} {takes}")
    content = path.read_bytes()
    try:  # in UTF-16, too, as Windows PowerShell writes what is sent into a file
        text = content.decode(json.detect_encoding(content)).removeprefix("\ufeff")
    except UnicodeDecodeError:
        text = ""
    if text.startswith("<!DOCTYPE html>"):
        raise ParameterError(f"{path.name} is a page, not the file that it was made of. {takes}")
    if not text.lstrip().startswith("{"):
        raise ParameterError(f"{path.name} is no answer or certificate: it is not JSON. {takes}")
    return text
