"""The same jobs done by this library and by others, in one run."""
