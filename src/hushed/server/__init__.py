"""The team server: people ask private tables over HTTPS against a budget. Experimental."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hushed.errors import MissingExtra

if TYPE_CHECKING:
    from hushed.server._app import create_app
    from hushed.server._serving import serve

if any(
    find_spec(each) is None
    for each in (
        "cryptography",
        "duckdb",
        "fastapi",
        "httptools",
        "ibis",
        "jinja2",
        "python_multipart",
        "uvicorn",
    )
):  # pragma: no cover  (an environment without them is tested by `make package`)
    raise MissingExtra("the team server", "server")

__all__ = ["create_app", "serve"]


def __getattr__(name: str) -> Any:
    """Load what is asked for: a process that judges questions needs no web server."""
    if name == "create_app":
        from hushed.server._app import create_app  # noqa: PLC0415

        return create_app
    if name == "serve":
        from hushed.server._serving import serve  # noqa: PLC0415

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
