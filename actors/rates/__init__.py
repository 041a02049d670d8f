"""Rates and network fees, refreshed by ticks."""
