"""The fixtures of tests that drive a browser."""

from tests.served import chromium, open_page, serve  # noqa: F401
