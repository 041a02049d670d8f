"""Starts, watches, restarts and ends processes."""
