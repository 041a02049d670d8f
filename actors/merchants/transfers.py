"""Moves money to the owner's personal wallet. The API calls it through the queue and waits for the answer."""

from __future__ import annotations

from uuid import UUID

from actors.context import context
from actors.queue.call_specs import TRANSFER_TO_PERSONAL
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.catalogue import hints
from core.catalogue.catalogue import Catalogue
from core.errors import PayoutFrozen, TransferBadAmount, TransferUnknownCurrency
from core.merchants.transfer_schemas import ToPersonal
from core.money import parse_units, rescale
from models.db import locks
from models.merchants import notices, transfers
from models.merchants.transfers import TransferRow
from models.payouts import freezes
from models.spends import signing_stops


@call_actor(TRANSFER_TO_PERSONAL, body=ToPersonal)
def transfer_to_personal(info: CallInfo, body: ToPersonal) -> CallReply:
    """Move an available amount from the merchant to its owner; an order_id does so once, whatever else it says."""
    merchant_id, catalogue = info.merchant(), context().catalogue
    with recorded(info) as record:
        made = _earlier(merchant_id, body.order_id) or _transfer(
            catalogue, merchant_id, body, principal=info.principal()
        )
        return record.store(transfers.to_personal(catalogue, made))


def _earlier(merchant_id: UUID, order_id: str | None) -> TransferRow | None:
    """Return the transfer that an order_id has made, waiting for one under way."""
    if order_id is None:
        return None
    locks.wait_order("transfer", merchant_id, order_id)
    return transfers.find_by_order(merchant_id, order_id)


def _transfer(catalogue: Catalogue, merchant_id: UUID, body: ToPersonal, *, principal: str) -> TransferRow:
    units = _units(catalogue, body)
    # A merchant's debt is taken from the balance first; a frozen merchant could hide money from that in the wallet.
    freezes.check_merchant(merchant_id, body.currency)
    # Nor may money leave that had left before a restore brought it back into the balance.
    if body.currency in signing_stops.doubted_coins(catalogue, context().available):
        raise PayoutFrozen
    made = transfers.transfer(merchant_id, body.order_id, body.currency, units, created_by=principal)
    notices.write(
        merchant_id,
        f"{body.amount} {body.currency} went to the owner's personal wallet.",
        topic=f"transfers {body.currency}",
        by=principal,
    )
    return made


def _units(catalogue: Catalogue, body: ToPersonal) -> int:
    """Read the amount in the ledger's units."""
    asset = catalogue.assets.get(body.currency)
    if asset is None:
        raise TransferUnknownCurrency(hints.unknown_coin(catalogue, body.currency))
    amount = parse_units(body.amount, digits=asset.precision, error=TransferBadAmount)
    # Two codes of the reference fit; where they do, this one answers.
    if amount == 0:
        raise TransferBadAmount
    return rescale(amount, asset.precision, asset.scale)
