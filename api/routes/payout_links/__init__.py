"""Endpoints of cheques."""
