"""Refunds: of payments, of what was never credited, of blocked wallets."""
