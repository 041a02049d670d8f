"""Cheques: calls, claims and ticks."""
