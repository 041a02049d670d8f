"""Endpoints of payments."""
