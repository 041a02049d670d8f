"""Declares the transitions of a payout link. A table; models.payout_links.rows acts on it."""

from __future__ import annotations

from typing import Final, Literal

LinkStatus = Literal["funded", "claiming", "claimed", "cancelled", "expired"]

LINK_TRANSITIONS: Final[dict[LinkStatus, frozenset[LinkStatus]]] = {
    "funded": frozenset({"claiming", "cancelled", "expired"}),
    "claiming": frozenset({"claimed", "funded"}),
    "claimed": frozenset(),
    "cancelled": frozenset(),
    "expired": frozenset(),
}
