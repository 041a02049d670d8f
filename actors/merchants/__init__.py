"""Merchants' settings, transfers and debts: allowlists, terms, transfers, debts."""
