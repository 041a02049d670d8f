"""Solana: keys so far; no network of this family is served yet."""
