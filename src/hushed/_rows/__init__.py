"""Rows of any container: what they are made of, copies, ranges."""
