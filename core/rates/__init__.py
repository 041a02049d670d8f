"""Rates: their sources, how several make one, and what follows from one for a price."""
