"""Invariants that must hold in the books at all times, as queries."""
