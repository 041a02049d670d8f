"""The EVM family: one adapter over nodes, scan and spends."""
