"""Endpoints of payouts."""
