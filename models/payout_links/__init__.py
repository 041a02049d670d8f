"""Payout links (cheques): rows, claims, batches, and the e-mails that tell of them."""
