"""Upkeep: the audit, pruning, e-mails."""
