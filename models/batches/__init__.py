"""Batches and their items."""
