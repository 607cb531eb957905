"""The workbench: a page on this computer to ask private tables without writing Python."""

from hushed.workbench._app import create_app
from hushed.workbench._serving import serve_workbench

__all__ = ["create_app", "serve_workbench"]
