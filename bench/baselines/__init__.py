"""Frozen: what the product is measured against. See ../README.md; nothing here is ever touched again."""
