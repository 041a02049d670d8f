"""Keeps and serves the chains that run here without a real node: TRON, Solana, TON."""
