"""Names the figures of an attempt in chains.spending.Offer: fee, change and rate.

Rows keep them under these names, so that the same transaction can be made again of them, and of the coins it spends.
"""

from collections.abc import Mapping
from typing import Final

from chains.spending import Offer

VERSION: Final = 2
TRUC_VERSION: Final = 3
"""Nodes allow one small child of it that is in no block yet (BIP-431)."""


def coin_offer(
    *, fee_units: int, change_units: int, change_parts: int, lock_height: int, rate: int, version: int = VERSION
) -> Offer:
    """Return an offer of a fee, which is all that it can cost.

    change_parts: into how many coins the change goes. rate: satoshi for a thousand virtual bytes.
    """
    return Offer(
        ceiling_units=fee_units,
        terms={
            "fee_units": fee_units,
            "change_units": change_units,
            "change_parts": change_parts,
            "lock_height": lock_height,
            "rate": rate,
            "version": version,
        },
    )


def change_of(terms: Mapping[str, int]) -> tuple[int, ...]:
    """Return the units of each coin of the change; the first also gets the remainder."""
    units, parts = terms["change_units"], terms["change_parts"]
    if not parts:
        return ()
    each, left = divmod(units, parts)
    return (each + left, *[each] * (parts - 1))
