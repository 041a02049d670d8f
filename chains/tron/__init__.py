"""TRON: one adapter over nodes, scan and spends."""
