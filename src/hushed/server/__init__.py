"""The team server: people ask private tables over HTTPS against a budget. Experimental."""

from hushed.server._app import create_app
from hushed.server._serving import serve

__all__ = ["create_app", "serve"]
