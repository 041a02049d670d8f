"""Development chains of the TRON family: a simulator of a node, its test token, and who pays with it."""
