"""Invoices: calls and ticks."""
