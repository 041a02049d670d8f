"""Following the chains: blocks, balances, witnesses, second readings."""
