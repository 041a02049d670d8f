"""Endpoints of refunds."""
