"""Keeps movements: the effects of included spends on our addresses, written and deleted with the inclusion.

They include fees and change, so that a sum over an address needs no knowledge of its family. Written under the lock of
the spend by models.spends.tracking; read by models.treasury.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from models.db.base import column, execute
from models.db.table import Big, Numeric, Table
from models.spends import unexplained
from models.spends.rows import Movement, SpendRow


class MovementRow(Table, table="spend_movements"):
    """A spend's effect on one of our addresses in one coin: signed, in the token's own units."""

    spend_id: UUID
    network: str
    address: str
    currency: str
    decimals: int
    units: Numeric
    height: Big


def note(catalogue: Catalogue, spend: SpendRow, moved: Collection[Movement]) -> None:
    """Replace the movements of an included spend; those of addresses that are not ours are left out."""
    execute("DELETE FROM spend_movements WHERE spend_id = %s", (spend.id,))
    ours = _ours(catalogue, spend, {each.address for each in moved})
    MovementRow.write_all(
        [
            MovementRow(
                spend_id=spend.id,
                network=spend.network,
                address=each.address,
                currency=each.currency,
                decimals=_decimals(catalogue, spend, each.currency),
                units=each.units,
                height=spend.mined_height or 0,
            )
            for each in moved
            if each.units and each.address in ours
        ]
    )


def _ours(catalogue: Catalogue, spend: SpendRow, addresses: Collection[str]) -> set[str]:
    """Return the gateway's addresses among these: wallets, pool addresses, and the spend's own."""
    ours = {spend.sender, spend.fee_payer}
    if spend.purpose not in {"payout", "lost"}:
        ours.update(output.recipient for output in spend.outputs)
    ours.update(unexplained.own(spend.network, catalogue.networks[spend.network].family, addresses))
    ours.update(
        column(
            "SELECT address FROM treasury_addresses WHERE network = %s AND address = ANY(%s)",
            (spend.network, list(addresses)),
        )
    )
    return ours


def _decimals(catalogue: Catalogue, spend: SpendRow, currency: str) -> int:
    if currency == spend.currency:
        return spend.decimals
    pair = catalogue.pair(currency, spend.network)
    return catalogue.scale(currency) if pair is None else pair.decimals
