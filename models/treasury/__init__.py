"""The gateway's own addresses: sweeps, top-ups, and the books against the chain."""
