"""Transactions of our own: rows, tracking, counters, and whether any may be signed."""
