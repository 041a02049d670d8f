"""Tries, signs, sends and follows spends on TRON, and plans sweeps."""
