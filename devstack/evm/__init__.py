"""Development chains of the EVM family: anvil, test tokens, and the buyer that pays with them."""
