"""Contracts of development chains, written once for every chain that runs such code, and where their variables lie."""
