"""Measures how chains are read and matched, a family a file. Called by bench.scan."""
