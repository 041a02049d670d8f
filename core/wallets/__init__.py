"""Static wallets as requests ask for them, and as they are shown."""
