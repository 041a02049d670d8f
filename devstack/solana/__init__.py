"""Development chains of the Solana family: a simulated node on LiteSVM, its mints, and a buyer."""
