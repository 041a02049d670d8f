"""A bitcoin node for machines without one: regtest alone, on the consensus engine that Bitcoin Core is made of."""
