"""Fills a database like a large gateway's, and lists its queries. Used by bench.scale."""
