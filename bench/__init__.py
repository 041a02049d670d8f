"""Measures the product against frozen baselines on one machine: `make bench`."""
