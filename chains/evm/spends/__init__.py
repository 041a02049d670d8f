"""Transactions of our own on an EVM chain: priced, signed, sent and followed."""
