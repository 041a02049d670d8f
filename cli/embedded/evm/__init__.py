"""Development chains of the EVM family: anvil, test tokens, and who pays with them."""
