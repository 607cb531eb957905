"""The fixtures of tests that drive a browser."""

from tests.served import chromium, open_page, serve, serve_process  # noqa: F401
