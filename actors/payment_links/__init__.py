"""Actors of payment links."""
