"""Rates and their sources."""
