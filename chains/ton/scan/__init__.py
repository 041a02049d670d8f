"""Reads the blocks that one block of TON's masterchain adds, and finds the credits in them."""
