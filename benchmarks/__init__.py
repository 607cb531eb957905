"""Measurements of speed and memory, as ratios against a named peer or limit of the same run."""
