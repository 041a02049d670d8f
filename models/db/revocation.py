"""Provides SQL conditions that a principal's key is revoked, for everything that keys order, set, co-sign or approve.

A lost key must not outlive its revocation, as first voice or as second. Principals that are no keys are never revoked.
"""

from __future__ import annotations

from typing import Final


def revoked(*columns: str) -> str:
    """Return a condition: true if one of the principals in these columns is a revoked key."""
    return f"EXISTS (SELECT 1 FROM api_keys k WHERE k.public_id IN ({', '.join(columns)}) AND k.revoked_at IS NOT NULL)"


# True for a rule r, of splits or of automatic withdrawals, while the keys that set and co-signed it are in force.
VOUCHED: Final = f"NOT {revoked('r.set_by', 'r.cosigned_by')}"
