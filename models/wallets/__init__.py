"""Static wallets: rows, deposits, settlement."""
