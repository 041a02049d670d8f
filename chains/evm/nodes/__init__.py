"""Nodes of an EVM network: asked one by one or together, and what their answers are read as."""
