"""Sealing, signing and stamping with keys that the environment holds."""
