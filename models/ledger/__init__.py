"""The ledger, its balances, and what is owed."""
