"""The treasury: sweeps, and the chain against the books."""
