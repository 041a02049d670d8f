"""Builds the timeline of an invoice from its stored rows and the events noted by models.invoices.events.

Read by api.routes.invoices.timeline. Only the invoice's merchant sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from core.addresses.addresses import display
from core.catalogue.catalogue import Catalogue
from core.invoices.timeline_schemas import EVENTS, EventName
from core.payouts.states import FINAL_PAYOUTS, SHOWN
from core.texts.render import coin_text, iso_time, price_text
from models.db.query import descending
from models.invoices import timeline_rows
from models.invoices.events import InvoiceEvent, detail_of, sum_of
from models.invoices.rows import InvoiceRow, QuoteRow
from models.invoices.shown import Shown
from models.invoices.timeline_rows import Delivery, DepositSeen, Refund, Seen

# If there are more, the timeline has the newest ones and the creation.
EVENTS_MAX: Final = 1000

_RANKS: Final = {event: rank for rank, event in enumerate(EVENTS)}
# The moments of a deposit's lost life that its "reorged" event keeps, and the timeline event of each.
_LOST: Final[dict[str, EventName]] = {
    "detected_at": "detected",
    "confirmed_at": "confirmation",
    "credited_at": "credited",
}
Detail = dict[str, Any]


class _Moment(NamedTuple):
    at: datetime
    event: EventName
    # Called only for events that are shown.
    detail: Callable[[], Detail]


def read(catalogue: Catalogue, shown: Shown) -> list[Detail]:
    """Return an invoice's events, oldest first: at, event and detail of each. At most EVENTS_MAX."""
    invoice = shown.invoice
    moments = [
        *_quotes(catalogue, shown),
        *_deposits(catalogue, invoice),
        *_sightings(catalogue, invoice),
        *_noted(invoice),
        *_refunds(catalogue, invoice),
        *_deliveries(invoice),
    ]
    moments.sort(key=lambda moment: (moment.at, _RANKS[moment.event]))
    created = _Moment(invoice.created_at, "created", partial(_created, catalogue, invoice))
    return [
        {"at": iso_time(moment.at), "event": moment.event, "detail": moment.detail()}
        for moment in (created, *moments[1 - EVENTS_MAX :])
    ]


def _created(catalogue: Catalogue, invoice: InvoiceRow) -> Detail:
    return {
        "amount": price_text(catalogue, invoice.price_currency, invoice.price_units),
        "currency": invoice.price_currency,
        "expired_at": int(invoice.expires_at.timestamp()),
    }


def _quotes(catalogue: Catalogue, shown: Shown) -> Iterator[_Moment]:
    quotes = QuoteRow.select().where(QuoteRow.invoice_id == shown.invoice.id)
    newest = quotes.order_by(descending(QuoteRow.generation)).limit(EVENTS_MAX).all()
    for quote in (*newest, *shown.later):
        yield _Moment(quote.valid_from, "quoted", partial(_quoted, catalogue, shown, quote))


def _quoted(catalogue: Catalogue, shown: Shown, quote: QuoteRow) -> Detail:
    invoice = shown.invoice
    is_without_rate = shown.is_unpriced and quote.generation == invoice.generation
    return {
        "generation": quote.generation,
        "payer_amount": coin_text(catalogue, invoice.pay_currency, quote.payer_units),
        "currency": invoice.pay_currency,
        "network": invoice.network,
        "rate_expires_at": int(quote.rate_expires_at.timestamp()),
    } | ({"waiting_for": "rate"} if is_without_rate else {})


def _deposits(catalogue: Catalogue, invoice: InvoiceRow) -> Iterator[_Moment]:
    for deposit in timeline_rows.deposits(invoice.id, limit=EVENTS_MAX):
        common = _Common(catalogue, deposit)
        yield _Moment(deposit.detected_at, "detected", partial(_detected, invoice, deposit, common))
        yield _Moment(deposit.counted_at, "confirmation", partial(_confirmation, catalogue, invoice, deposit, common))
        if deposit.credited_at is not None:
            yield _Moment(deposit.credited_at, "credited", partial(_credited, catalogue, deposit, common))


def _sightings(catalogue: Catalogue, invoice: InvoiceRow) -> Iterator[_Moment]:
    for seen in timeline_rows.sightings(invoice.id, limit=EVENTS_MAX):
        yield _Moment(seen.seen_at, "detected", partial(_sighted, catalogue, invoice, seen))


def _sighted(catalogue: Catalogue, invoice: InvoiceRow, seen: Seen) -> Detail:
    """Return the detail of a payment in no block: that it waits for one, or when it was gone."""
    moment = {} if seen.soon_at is None else {"seen_at": iso_time(seen.soon_at)}
    ending = {"waiting_for": "block"} if seen.gone_at is None else {"gone_at": iso_time(seen.gone_at)}
    is_late = (seen.soon_at or seen.seen_at) > invoice.expires_at
    return sum_of(catalogue, seen) | moment | {"is_late": is_late} | ending


class _Common:
    """The detail common to all events of a deposit; made once, and only if one is shown."""

    __slots__ = ("_catalogue", "_deposit", "_detail")

    def __init__(self, catalogue: Catalogue, deposit: DepositSeen) -> None:
        self._catalogue, self._deposit = catalogue, deposit
        self._detail: Detail | None = None

    def __call__(self) -> Detail:
        if self._detail is None:
            self._detail = detail_of(self._catalogue, self._deposit)
        return self._detail


def _detected(invoice: InvoiceRow, deposit: DepositSeen, common: _Common) -> Detail:
    is_late = deposit.seen_at > invoice.expires_at
    return common() | {"seen_at": iso_time(deposit.seen_at), "is_late": is_late}


def _confirmation(catalogue: Catalogue, invoice: InvoiceRow, deposit: DepositSeen, common: _Common) -> Detail:
    needed = max(catalogue.networks[deposit.network].confirmations, deposit.depth_min)
    depth = needed if deposit.is_confirmed else max(0, min(deposit.depth, needed))
    detail = common() | {"depth": f"{depth} of {needed}"}
    waiting = _waiting(invoice, deposit, is_deep=depth == needed)
    doubt = {"witness_reason": deposit.doubt, "witnesses": deposit.witnesses} if deposit.doubt else {}
    return detail | ({"waiting_for": waiting} if waiting else {}) | doubt


def _waiting(invoice: InvoiceRow, deposit: DepositSeen, *, is_deep: bool) -> str | None:
    """Return what a deposit waits for before it is credited; None if for nothing."""
    if deposit.stray_reason == "dust" or deposit.has_refund or deposit.status == "credited":
        return None
    if deposit.status == "pending":
        if deposit.is_scan_halted:
            return "scan"
        return "confirmations" if not is_deep else "witnesses" if deposit.doubt else None
    if deposit.stray_reason is not None or invoice.status == "wrong_amount":
        return "resolve"
    return "rest" if invoice.status == "check" else None


def _credited(catalogue: Catalogue, deposit: DepositSeen, common: _Common) -> Detail:
    shares = {"net_amount": deposit.net_units, "fee": deposit.fee_units}
    return common() | {name: coin_text(catalogue, deposit.currency, u) for name, u in shares.items()}


def _noted(invoice: InvoiceRow) -> Iterator[_Moment]:
    events = InvoiceEvent.select().where(InvoiceEvent.invoice_id == invoice.id)
    for noted in events.order_by(descending(InvoiceEvent.id)).limit(EVENTS_MAX).all():
        yield _Moment(noted.at, noted.event, partial(dict, noted.detail))
        if noted.event == "reorged":
            yield from _lost_life(noted.detail)


def _lost_life(detail: Detail) -> Iterator[_Moment]:
    """Yield the events of a deposit's life before a reorg took it: its row has only a later life, or none."""
    base = {name: shown for name, shown in detail.items() if name not in {*_LOST, "status", "reason"}}
    for name, event in _LOST.items():
        if name in detail:
            yield _Moment(datetime.fromisoformat(detail[name]), event, partial(dict, base))


def _refunds(catalogue: Catalogue, invoice: InvoiceRow) -> Iterator[_Moment]:
    for refund in timeline_rows.refunds(invoice.id, limit=EVENTS_MAX):
        yield _Moment(refund.created_at, "refunded", partial(_refunded, catalogue, refund))


def _refunded(catalogue: Catalogue, refund: Refund) -> Detail:
    return {
        "uuid": str(refund.id),
        "status": SHOWN[refund.status],
        "amount": coin_text(catalogue, refund.currency, refund.amount_units),
        "currency": refund.currency,
        "network": refund.network,
        "address": display(catalogue.networks[refund.network], refund.address),
        "txid": refund.txid,
        **({"error": refund.error} if refund.status == "failed" and refund.error else {}),
    } | ({"ended_at": iso_time(refund.updated_at)} if refund.status in FINAL_PAYOUTS else {})


def _deliveries(invoice: InvoiceRow) -> Iterator[_Moment]:
    for sent in timeline_rows.deliveries(invoice.id, limit=EVENTS_MAX):
        yield _Moment(sent.created_at, "webhook", partial(_delivery, sent))


def _delivery(sent: Delivery) -> Detail:
    last = {"last_status_code": sent.last_status_code, "last_error": sent.last_error}
    return {
        "delivery_id": str(sent.id),
        "event": sent.event,
        "status": sent.status,
        "attempts": sent.attempts,
        **{name: shown for name, shown in last.items() if shown is not None},
    } | ({"delivered_at": iso_time(sent.delivered_at)} if sent.delivered_at else {})
