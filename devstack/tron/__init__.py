"""Development chains of the TRON family: a simulated node, its test token, and the buyer that pays with it."""
