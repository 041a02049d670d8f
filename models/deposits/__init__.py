"""Payments to our addresses: deposits, their crediting, their witnesses, and how far the scan has come."""
