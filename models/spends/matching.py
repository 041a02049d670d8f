"""Matches outputs of unexplained departures with the orders that may have asked for them. Reads only.

Called by models.recovery.adoption, models.recovery.writeoffs, models.outcomes.doubts and actors.payout_links.checks.

An order that a merchant repeats after a restore may have another net sum than the one that was paid, because the
network's fee has moved:

    the lost order    gross 10   fee 1.0   paid 9.0   on chain
    its repeat        gross 10   fee 1.2   asks 8.8   in the rows

So an order matches by network, coin, recipient, memo and gross sum. The fee that would have made the difference has to
be one that the gateway could have charged. Only a fee that comes out of the sum changes what arrives: an order whose
fee is on top asks for the very same again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple
from uuid import UUID

from psycopg2.extras import Json

from core.addresses.addresses import stored_form
from core.catalogue.catalogue import Catalogue
from core.money import PrecisionLostError
from core.payouts.states import UNSIGNED_PAYOUTS
from models.db.base import column, is_true, rows_as, value
from models.payouts.rows import PayoutRow
from models.spends.unexplained import IS_OPEN, Part, UnexplainedRow

# A fee within these bounds of today's matches by itself; gas moves more in hours than in minutes. Beyond them an
# operator names the order: a wrong match would cost a recipient the difference.
FEE_TIMES_MAX: Final = 4
# Where an order would be paid again if it were overlooked, far more counts as possible.
POSSIBLE_TIMES_MAX: Final = 100
# Merchants repeat lost orders within days of a restore. For this long after a write-off, an order that asks for the
# same waits for an operator.
REPEATED_WITHIN_S: Final = 7 * 86_400
# Of orders that may have asked for the same, no more are looked at.
ORDERS_MAX: Final = 100

# Of a payout: whether the network's fee comes out of its sum. A refund out of suspense sends what is left after it.
_IS_FEE_OUT: Final = "(NOT is_fee_on_top OR funded_from = 'suspense')"
# Of a payout: whether it is sent with what lives in a window, of which no block is known.
_MAY_EXPIRE: Final = (
    "status IN ('broadcasting', 'sent') AND EXISTS (SELECT FROM spend_outputs o JOIN spend_attempts a USING (spend_id)"
    " WHERE o.payout_id = payouts.id AND num_nonnulls(a.expires_at, a.expires_height, a.expires_block) > 0"
    " AND NOT EXISTS (SELECT FROM attempts_seen s WHERE (s.network, s.txid) = (a.network, a.txid))"
    " AND NOT EXISTS (SELECT FROM unexplained_departures d WHERE (d.network, d.txid) = (a.network, a.txid)"
    "   AND d.spend_id IS NOT NULL))"
)
# Open outputs of the hot wallet to one recipient with one memo, in the token's own units; chosen as by the property
# UnexplainedRow.may_pay.
_OUTPUTS: Final = (
    "SELECT d.txid, (part ->> 'units')::numeric AS units, part ->> 'payout_id' AS payout_id"
    " FROM unexplained_departures d, jsonb_array_elements(d.outputs) part"
    f" WHERE d.network = %s AND d.{IS_OPEN} AND (d.is_transfer OR d.spends <> '[]') AND d.key_ordinal IS NULL"
    " AND d.currency = %s AND part ->> 'recipient' = %s AND part ->> 'memo' = %s"
)
# Outputs of the hot wallet to one recipient with one memo, of transactions that were written off lately; without those
# that pay a payout. In the token's own units.
_WRITTEN_OFF: Final = (
    "SELECT d.txid, o.token_units AS units, NULL AS payout_id FROM unexplained_departures d"
    " JOIN spend_outputs o ON o.spend_id = d.spend_id WHERE d.network = %s AND d.status = 'written_off'"
    " AND d.settled_at > app_now() - make_interval(secs => %s) AND (d.is_transfer OR d.spends <> '[]')"
    " AND d.key_ordinal IS NULL AND d.currency = %s AND o.recipient = %s AND o.memo = %s AND o.payout_id IS NULL"
    " AND o.state IN ('open', 'confirmed') AND o.effect IS DISTINCT FROM 'none'"
    " AND NOT (d.outputs -> o.place -> 'not_paid' @> to_jsonb(%s::text)) ORDER BY d.txid"
)


class Order(NamedTuple):
    """An open payout that may have asked for an output. Units are the ledger's."""

    id: UUID
    merchant_id: UUID
    order_id: str
    held_units: int
    fee_units: int
    is_exact: bool


class Output(NamedTuple):
    """An output of an unexplained departure that no order is known to ask for. Units are the token's own."""

    txid: str
    units: int
    payout_id: str | None


def ledger_units(catalogue: Catalogue, departure: UnexplainedRow, units: int) -> int | None:
    """Return token units of what a transaction moved in the ledger's; None for a coin not offered on its network."""
    pair = catalogue.pair(departure.currency, departure.network)
    if pair is None or _stored(pair.contract) != _stored(departure.contract):
        return None
    return pair.to_ledger(units, catalogue.scale(departure.currency))


def _stored(contract: str | None) -> str:
    return stored_form(contract or "") or contract or ""


# By an output --------------------------------------------------------------------------------------------------


def asker(catalogue: Catalogue, departure: UnexplainedRow, part: Part, taken: Collection[UUID]) -> UUID | None:
    """Return the approved payout that an output pays, of those that are not taken; None where that is not certain.

    The oldest that asks for exactly this, or else the only one of this gross sum.
    """
    units = ledger_units(catalogue, departure, part.units)
    orders = [] if units is None else _orders(departure, part, units, taken)
    if orders and orders[0].is_exact:
        return orders[0].id
    same = {(each.merchant_id, each.held_units) for each in orders}
    return orders[0].id if len(same) == 1 and _is_alone(catalogue, departure, part, orders[0]) else None


def _is_alone(catalogue: Catalogue, departure: UnexplainedRow, part: Part, order: Order) -> bool:
    """Return whether no output of another sum waits that an order may have asked for at another fee."""
    waiting = _brought(catalogue, departure.network, departure.currency, part.recipient, part.memo)
    return not any(
        _is_fee(order.held_units - units, order.fee_units, FEE_TIMES_MAX)
        for each, units in waiting if each.payout_id is None and each.units != part.units
    )  # fmt: skip


def rivals(catalogue: Catalogue, departure: UnexplainedRow, part: Part) -> list[Order]:
    """Return the open orders that an output may have paid, at any fee: signed later, they would be paid twice.

    A sent order counts too while its bytes may expire and no known block includes them: it may have been signed again
    in commits that the database lost.
    """
    units = ledger_units(catalogue, departure, part.units)
    if not units or not departure.may_pay or departure.key_ordinal is not None or not part.has_effect:
        return []
    return _orders(departure, part, units, is_possible_enough=True)


def _orders(
    departure: UnexplainedRow, part: Part, units: int, taken: Collection[UUID] = (), *, is_possible_enough: bool = False
) -> list[Order]:
    """Return open orders of an output, the exact and then the oldest first; only approved ones that it surely paid."""
    fee = (
        f"BETWEEN 0 AND fee_units * {POSSIBLE_TIMES_MAX}" if is_possible_enough
        else f"BETWEEN fee_units / {FEE_TIMES_MAX} AND fee_units * {FEE_TIMES_MAX}"
    )  # fmt: skip
    return rows_as(
        Order,
        "SELECT id, merchant_id, order_id, held_units, fee_units, to_units = %(units)s AS is_exact FROM payouts"
        f" WHERE network = %(network)s AND (status = ANY(%(statuses)s) OR %(is_possible)s AND {_MAY_EXPIRE})"
        " AND currency = %(currency)s"
        " AND address = %(address)s AND memo = %(memo)s"
        f" AND (to_units = %(units)s OR ({_IS_FEE_OUT} AND held_units - %(units)s {fee}))"
        " AND id <> ALL(%(taken)s::uuid[]) ORDER BY to_units <> %(units)s, created_at, id LIMIT %(limit)s",
        {
            "network": departure.network, "currency": departure.currency, "address": part.recipient, "memo": part.memo,
            "units": units, "taken": list(taken), "limit": ORDERS_MAX,
            "statuses": list(UNSIGNED_PAYOUTS) if is_possible_enough else ["approved"],
            "is_possible": is_possible_enough,
        },
    )  # fmt: skip


def is_paid_by(payout: PayoutRow, departure: UnexplainedRow, part: Part, units: int) -> bool:
    """Return whether an output can have paid a payout, as an operator says; units: the ledger's."""
    asked = (payout.network, payout.currency, payout.address, payout.memo)
    return asked == (departure.network, departure.currency, part.recipient, part.memo) and _is_within(payout, units)


def _is_within(payout: PayoutRow, units: int, *, times: int | None = None) -> bool:
    """Return whether a payout asks for this sum, or did at another fee. times: None for any fee."""
    gross_units = payout.to_units + payout.fee_units
    is_fee_out = not payout.is_fee_on_top or payout.funded_from == "suspense"
    if not is_fee_out or units == payout.to_units:
        return units == payout.to_units
    return _is_fee(gross_units - units, payout.fee_units, times)


def _is_fee(units: int, today_units: int, times: int | None) -> bool:
    """Return whether a fee can have been charged, by what is charged today. times: None for any fee."""
    return units >= 0 if times is None else today_units <= units * times and units <= today_units * times


# By an order ---------------------------------------------------------------------------------------------------


def payers(catalogue: Catalogue, payout: PayoutRow) -> list[str]:
    """Return the unexplained departures that may have paid a payout, whatever its fee was, or that are named for it."""
    return [
        each.txid
        for each, units in _brought(catalogue, payout.network, payout.currency, payout.address, payout.memo)
        if each.payout_id == str(payout.id) or (each.payout_id is None and _is_within(payout, units))
    ]


def written_off(catalogue: Catalogue, payout: PayoutRow) -> list[str]:
    """Return the transactions written off recently that may have paid a payout, if its merchant repeats a lost order.

    Those that did not pay it, as an operator stated, are left out.
    """
    pair, scale = catalogue.pair(payout.currency, payout.network), catalogue.scale(payout.currency)
    outputs = rows_as(
        Output,
        _WRITTEN_OFF,
        (payout.network, REPEATED_WITHIN_S, payout.currency, payout.address, payout.memo, payout.id),
    )
    return [
        each.txid
        for each in outputs
        if pair is not None and _is_within(payout, pair.to_ledger(int(each.units), scale), times=FEE_TIMES_MAX)
    ]


def is_repeat(catalogue: Catalogue, new: PayoutRow) -> bool:
    """Return whether unexplained outputs brought a new payout's transfer, more than all open payouts there ask for."""
    sums = _brought(catalogue, new.network, new.currency, new.address, new.memo)
    brought = sum(_is_within(new, units, times=FEE_TIMES_MAX) for each, units in sums if each.payout_id is None)
    asked: int = value(
        "SELECT count(*) FROM payouts WHERE network = %s AND status = ANY(%s) AND currency = %s AND address = %s"
        " AND memo = %s",
        (new.network, list(UNSIGNED_PAYOUTS), new.currency, new.address, new.memo),
    )
    return brought > asked


def has_moved(catalogue: Catalogue, *, network: str, currency: str, units: int) -> bool:
    """Return whether an output of an unexplained departure brought just this sum."""
    pair = catalogue.pair(currency, network)
    try:
        token_units = 0 if pair is None else pair.from_ledger(units, catalogue.scale(currency))
    except PrecisionLostError:
        return False
    return is_true(
        f"SELECT 1 FROM unexplained_departures WHERE network = %s AND {IS_OPEN} AND currency = %s"
        " AND outputs @> %s LIMIT 1",
        (network, currency, Json([{"units": token_units}])),
    )


def _brought(catalogue: Catalogue, network: str, currency: str, address: str, memo: str) -> list[tuple[Output, int]]:
    """Return the open outputs of the hot wallet to an address, each with its units in the ledger's."""
    pair, scale = catalogue.pair(currency, network), catalogue.scale(currency)
    if pair is None:
        return []
    return [(each, pair.to_ledger(int(each.units), scale)) for each in _outputs(network, currency, address, memo)]


def cheques(catalogue: Catalogue, departure: UnexplainedRow, part: Part, *, limit: int) -> list[UUID]:
    """Return open cheques of just the sum that an output brought: a claim that the database lost may have paid one."""
    units = ledger_units(catalogue, departure, part.units)
    return column(
        "SELECT id FROM payout_links WHERE network = %s AND currency = %s AND amount_units = %s"
        " AND status IN ('funded', 'claiming') ORDER BY id LIMIT %s",
        (departure.network, departure.currency, units or 0, limit),
    )


def _outputs(network: str, currency: str, address: str, memo: str) -> list[Output]:
    return rows_as(Output, _OUTPUTS, (network, currency, address, memo))
