"""Bitcoin's development chain: regtest, by bitcoind or by our own node with Core's consensus engine."""
