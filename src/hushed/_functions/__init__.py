"""Functions of rows: how they are called, watched and tried, and the one gate to private rows."""
