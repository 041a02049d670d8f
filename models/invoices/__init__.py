"""Invoices: rows, plans, settlement, history."""
