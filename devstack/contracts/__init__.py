"""Contracts of development chains, for every chain with such code, and the storage slots of their variables."""
