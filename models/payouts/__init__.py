"""Payouts: rows, rules, history, and what keeps them from leaving."""
