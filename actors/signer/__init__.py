"""The signer: its limits, and how it signs, sends, follows and recovers spends."""
