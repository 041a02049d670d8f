"""Measures reading and matching blocks, a family a file. Called by bench.scan."""
