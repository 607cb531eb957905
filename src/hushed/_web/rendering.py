"""Pages of templates, forms that were sent, and files to download; needs what serves pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import Response
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from hushed._web.messages import Typed, say_moment, shorten, spell_controls

STATIC = Path(__file__).parent / "static"


def make_environment(package: str) -> Environment:
    """Make what fills in the templates of a package; all that is filled in is escaped."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("hushed._web")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=spell_controls,
    )
    made.filters |= {
        "pair": lambda text: (text, text),
        "named": lambda column: (column.name, column.label),
        "line": shorten,
        "typed": Typed,
        "moment": say_moment,
    }
    return made


def download(name: str, content: str | bytes, media: str) -> Response:
    """Hand out a file that the browser saves and never runs."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "hushed"
    return Response(
        content,
        media_type=media,
        headers={
            "content-disposition": f'attachment; filename="{safe}"',
            "content-security-policy": "default-src 'none'; sandbox",
        },
    )


def is_part(request: Request) -> bool:
    """Whether htmx asks for a part of a page."""
    return request.headers.get("hx-request") == "true"


async def read_fields(request: Request) -> Mapping[str, str]:
    """Read a form: its texts, the last one of those with the same name."""
    form = await request.form(max_files=0, max_fields=5000)
    return {name: text for name, text in form.multi_items() if isinstance(text, str)}


Fields = Annotated[Mapping[str, str], Depends(read_fields)]
