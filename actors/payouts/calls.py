"""Creates payouts, one or many, and keeps who bears their fees. The API calls it through the queue and waits."""

from __future__ import annotations

import json
from typing import Any

import psycopg2
import structlog

from actors.context import Context, context
from actors.payouts import orders as payout_orders
from actors.queue.call_specs import CREATE_PAYOUT, CREATE_PAYOUTS, SET_PAYOUT_FEES
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.errors import DomainError, GatewayBusy, GatewayInternalError
from core.payouts.schemas import ORDER_ID_CHARS_MAX, CreatePayout, MassOrder, PayoutFeeSettings
from models.db.base import DEADLOCK, LOCK_NOT_AVAILABLE, QUERY_CANCELED, SERIALIZATION_FAILURE, part, pgcode
from models.payouts import order_checks
from models.payouts import views as payout_views
from models.queue import calls

log = structlog.get_logger()


@call_actor(CREATE_PAYOUT, body=CreatePayout)
def create_payout(info: CallInfo, body: CreatePayout) -> CallReply:
    """Create a payout, or return the existing one with its order_id."""
    with recorded(info) as record:
        return record.store(payout_orders.create(context(), info.asker(), body))


@call_actor(CREATE_PAYOUTS, body=MassOrder)
def create_payouts(info: CallInfo, order: MassOrder) -> CallReply:
    """Create the payouts of a mass call in one transaction; a refusal concerns only its own payout.

    So a caller that stopped waiting has created none of them. An order_id finds a payout that existed already.
    """
    ctx = context()
    with recorded(info) as record:
        calls.take_turn(info.merchant())
        items = []
        for text in order.items:
            fields = json.loads(text)
            try:
                items.append(payout_views.mass_success(_make(ctx, info, order, fields)))
            except DomainError as refusal:
                items.append(payout_views.mass_failure(_order_id(fields), refusal.message))
        return record.store({"items": items})


def _make(ctx: Context, info: CallInfo, order: MassOrder, fields: object) -> dict[str, Any]:
    """Create one payout of a mass call. Raises DomainError if it is refused; other errors end the whole call."""
    body = payout_orders.read_item(ctx, fields)
    try:
        with part():
            return payout_orders.create(ctx, info.asker(), body, source=order.source)
    except psycopg2.Error as error:
        code = pgcode(error)
        # Without a code the connection is lost; a deadlock's victim is repeated. Both concern the whole call.
        if code is None or code in {DEADLOCK, SERIALIZATION_FAILURE}:
            raise
        if code in {LOCK_NOT_AVAILABLE, QUERY_CANCELED}:
            raise GatewayBusy from error
        log.exception("payout.item_failed", request_id=info.request_id)
        raise GatewayInternalError from error


def _order_id(fields: object) -> str:
    """Return the order_id of a refused item, shortened and made valid; '' if it is no text."""
    text = fields.get("order_id") if isinstance(fields, dict) else None
    return text[:ORDER_ID_CHARS_MAX].encode(errors="replace").decode() if isinstance(text, str) else ""


@call_actor(SET_PAYOUT_FEES, body=PayoutFeeSettings)
def set_payout_fees(info: CallInfo, wanted: PayoutFeeSettings) -> CallReply:
    """Set who bears the network fee by default; without a value, only return the setting."""
    merchant_id = info.merchant()
    with recorded(info) as record:
        if wanted.is_subtract is not None:
            order_checks.set_fee_on_top(merchant_id, is_fee_on_top=wanted.is_subtract)
        shown = {"is_subtract": order_checks.read_terms(merchant_id).is_fee_on_top}
        return record.store(shown)
