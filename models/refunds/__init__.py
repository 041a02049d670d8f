"""Refunds: rows, reads, endings."""
