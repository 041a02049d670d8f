"""Batches: taken by calls, worked off by ticks."""
