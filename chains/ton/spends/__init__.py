"""Tries, signs, sends and follows spends on TON."""
