"""The top floor: what ends a payout or takes a deposit back, with all that hangs on it."""
