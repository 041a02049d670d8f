"""Frozen baselines for the product's benchmarks. See ../README.md; their code never changes."""
