"""Static wallets: calls and ticks."""
