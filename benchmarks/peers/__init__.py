"""The same jobs done by this library and by others, each in a process of its own."""

from benchmarks.peers.comparison import add_options, main

__all__ = ["add_options", "main"]
