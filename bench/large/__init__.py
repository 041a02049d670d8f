"""Fills a database as a large gateway does, and names what is asked of it. Used by bench.scale."""
