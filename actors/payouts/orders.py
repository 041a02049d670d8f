"""Creates payouts, inside the caller's transaction.

Called by actors.payouts.calls and by the actors that do batches.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import psycopg2.errors

from actors.context import Context
from actors.payouts import gas_reserves
from actors.signer import limits
from core.errors import (
    PayoutBadAmount,
    PayoutDuplicateReference,
    PayoutFrozen,
    PayoutFundsMaturing,
    PayoutInsufficientFunds,
    RequestBadField,
)
from core.http.requests import read_request
from core.ids import uuid7
from core.payouts.schemas import CreatePayout, Source
from models.db import locks
from models.ledger.ledger import InsufficientFundsError
from models.payouts import conversion, freezes, order_checks
from models.payouts import rows as payouts
from models.payouts import views as payout_views
from models.payouts.rows import PayoutRow
from models.queue.calls import Asker
from models.spends import matching, signing_stops


def read_item(ctx: Context, fields: object) -> CreatePayout:
    """Read an item of a mass call or a batch as POST /v1/payout reads its body. Raises its DomainErrors."""
    if not isinstance(fields, dict):
        raise RequestBadField("A payout must be an object.")
    return read_request(CreatePayout, fields, own_hosts=ctx.settings.own_hosts)


def create(ctx: Context, asker: Asker, body: CreatePayout, *, source: Source | None = None) -> dict[str, Any]:
    """Hold the money and write the payout, in the caller's transaction; return it as its creation answers.

    If the order_id already has a payout, that is returned, whatever the body contains; of two calls at once, one waits.
    source: used if the body names none. Raises payout.*, compliance.* and request.* errors; after one the transaction
    must be rolled back.
    """
    locks.wait_order("payout", asker.merchant_id, body.order_id)
    payout = payouts.find_by_order(asker.merchant_id, body.order_id)
    if payout is None:
        payout = _make(ctx, _planned(ctx, asker, body, source))
    return payout_views.created(ctx.catalogue, payout)


def _planned(ctx: Context, asker: Asker, body: CreatePayout, source: Source | None) -> PayoutRow:
    """Check an order by all rules that do not need the balance; return its payout."""
    catalogue = ctx.catalogue
    pair = order_checks.choose_pair(catalogue, ctx.available, currency=body.currency, network=body.network)
    units = order_checks.amount_units(catalogue, pair.currency, body.amount)
    order_checks.check_minimum(catalogue, pair, units)
    order_checks.check_memo_carried(catalogue, pair.network, body.memo)
    address = order_checks.check_destination(catalogue, ctx.deny_list, network=pair.network, address=body.address)
    terms = order_checks.read_terms(asker.merchant_id)
    amounts = order_checks.amounts(
        units,
        order_checks.fee_units(catalogue, ctx.market.read(), pair.currency, pair.network),
        is_fee_on_top=terms.is_fee_on_top if body.is_subtract is None else body.is_subtract,
    )
    order_checks.check_carried(catalogue, pair.method, address=address, units=amounts.to_units)
    limits.check_size(ctx, pair.currency, amounts.to_units, error=PayoutBadAmount)
    change = _priced(ctx, body, amounts.held_units)
    return PayoutRow(
        id=uuid7(),
        merchant_id=asker.merchant_id,
        order_id=body.order_id,
        kind="payout",
        currency=pair.currency,
        network=pair.network,
        address=address,
        memo=body.memo or "",
        amount_units=amounts.amount_units,
        fee_units=amounts.fee_units,
        to_units=amounts.to_units,
        is_fee_on_top=amounts.is_fee_on_top,
        status=terms.first_status,
        source=body.source or source or "api",
        priority=body.priority or "normal",
        created_by=asker.principal,
        url_callback=body.url_callback,
        request_id=asker.request_id,
        **({} if change is None else asdict(change)),
    )


def _priced(ctx: Context, body: CreatePayout, held_units: int) -> conversion.Conversion | None:
    """Price the conversion that a request asks for."""
    if body.from_currency is None:
        return None
    return conversion.price(
        ctx.catalogue,
        ctx.market.read().conversion_rates,
        from_currency=body.from_currency,
        currency=body.currency,
        units=held_units,
        spread_ppm=ctx.settings.conversion_spread_ppm,
    )


def _check_source(ctx: Context, new: PayoutRow, from_currency: str) -> None:
    """Refuse to convert a balance that may have left before a restore. Raises PayoutFrozen.

    A repeat of the payout that left is accepted: its transaction waits to be adopted.
    """
    is_doubted = from_currency in signing_stops.doubted_coins(ctx.catalogue, ctx.available)
    if is_doubted and not matching.is_repeat(ctx.catalogue, new):
        raise PayoutFrozen


def _make(ctx: Context, new: PayoutRow) -> PayoutRow:
    """Convert if requested, hold the money, and write the payout."""
    freezes.check(new.merchant_id, new.network, new.currency)
    if new.from_currency is not None and new.from_units is not None:
        freezes.check_merchant(new.merchant_id, new.from_currency)
        _check_source(ctx, new, new.from_currency)
        conversion.book(
            new,
            from_currency=new.from_currency,
            from_units=new.from_units,
            reserve_units=gas_reserves.reserve_units(ctx, new.currency),
        )
    held_units = new.to_units + new.fee_units
    try:
        return payouts.insert(ctx.catalogue, new)
    except InsufficientFundsError:
        order_checks.raise_shortage(
            new.merchant_id,
            new.currency,
            held_units,
            insufficient=PayoutInsufficientFunds,
            maturing=PayoutFundsMaturing,
        )
    except psycopg2.errors.UniqueViolation as error:
        raise PayoutDuplicateReference from error
