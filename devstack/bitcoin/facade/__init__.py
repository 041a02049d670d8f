"""A bitcoin node for machines without one: regtest only, on Bitcoin Core's consensus engine."""
