"""Bitcoin's development chain: regtest, by a real node or by one of our own on its consensus engine."""
