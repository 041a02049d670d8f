"""Rings the doorbells, and does nothing else: a scheduler has no database and loads no actor."""
