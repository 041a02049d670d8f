"""Payouts: calls, approvals, and what both share."""
