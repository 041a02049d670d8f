"""Unexplained departures, as after a restored backup: whose they were, or written off as lost."""
