"""`sluice treasury`: the gateway's own wallets."""
