"""Blockchains behind one protocol, and the keys. Called by actors and cli; nothing else knows a chain library."""
