"""Merchants: keys, terms, allowlists, transfers."""
