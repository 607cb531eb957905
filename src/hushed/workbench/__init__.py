"""The workbench: a page on this computer to ask private tables without writing Python."""

from importlib.util import find_spec

from hushed.errors import MissingExtra

if any(
    find_spec(each) is None
    for each in ("duckdb", "fastapi", "ibis", "jinja2", "python_multipart", "uvicorn")
):  # pragma: no cover  (an environment without them is tested by `make package`)
    raise MissingExtra("the workbench", "workbench")

from hushed.workbench._app import create_app
from hushed.workbench._serving import serve_workbench

__all__ = ["create_app", "serve_workbench"]
