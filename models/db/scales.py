"""Keeps the scale that each coin's stored units have. A catalogue that says otherwise would misread every amount.

Kept by every worker when it starts.
"""

from __future__ import annotations

from collections.abc import Mapping

from models.db.base import execute, rows


class ScaleChangedError(Exception):
    """The catalogue and the stored amounts disagree: a migration has to multiply the amounts first."""


def keep(scales: Mapping[str, int]) -> None:
    """Write down the scales of new coins and compare the others. Raises ScaleChangedError."""
    execute(
        "INSERT INTO ledger_scales (currency, scale) SELECT * FROM unnest(%s::text[], %s::smallint[])"
        " ON CONFLICT DO NOTHING",
        (list(scales), list(scales.values())),
    )
    stored = dict(rows("SELECT currency, scale FROM ledger_scales"))
    changed = sorted(currency for currency, scale in scales.items() if stored[currency] != scale)
    if changed:
        raise ScaleChangedError(f"stored amounts have another scale: {', '.join(changed)}")
