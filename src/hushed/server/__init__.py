"""The team server: people ask private tables over HTTPS against a budget. Experimental."""

from importlib.util import find_spec

from hushed.errors import MissingExtra

if any(
    find_spec(each) is None
    for each in (
        "cryptography",
        "duckdb",
        "fastapi",
        "ibis",
        "jinja2",
        "python_multipart",
        "uvicorn",
    )
):  # pragma: no cover  (an environment without them is tested by `make package`)
    raise MissingExtra("the team server", "server")

from hushed.server._app import create_app
from hushed.server._serving import serve

__all__ = ["create_app", "serve"]
