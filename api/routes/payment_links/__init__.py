"""Endpoints of payment links."""
