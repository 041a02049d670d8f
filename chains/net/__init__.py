"""Nodes of a network: asked one by one or together, within a budget; JSON-RPC over HTTP."""
