"""Payout links (cheques): calls, claims and ticks."""
