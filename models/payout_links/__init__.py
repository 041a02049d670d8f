"""Payout links (cheques): rows, claims, batches, and their e-mails."""
