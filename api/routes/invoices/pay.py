"""Shows payments to their buyer: public, found by their id alone, without the merchant's private fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

import msgspec

from actors.queue.call_specs import SELECT_METHOD
from api.endpoints import PUBLIC, Actor, Call, Endpoint, Reply, envelope
from api.gateway import Gateway
from api.routes.invoices.calls import EXAMPLE
from core import errors
from core.catalogue.catalogue import Method
from core.ids import is_uuid
from core.invoices.schemas import MethodChoice, PublicPayment, SelectMethod
from core.rates import pricing
from core.texts.render import coin_text
from models.invoices import plan as invoice_plan
from models.invoices import quoting, views
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.invoices.shown import Shown
from models.merchants.terms import load_terms

PATH: Final = "/v1/pay/{invoice_id}"
FEE_DIGITS: Final = 2
PRIVATE: Final = ("additional_data", "payer_email", "payer_address")


def invoice_id(text: str) -> UUID:
    """Return the id in a path; only the canonical spelling of a UUID is valid."""
    if not is_uuid(text):
        raise errors.PayBadUuid
    return UUID(text)


def find(gateway: Gateway, text: str) -> Shown:
    """Return the invoice of a path at its present quote, or raise pay.bad_uuid or pay.not_found."""
    row = invoices.find_public(invoice_id(text))
    if row is None:
        raise errors.PayNotFound
    return quoting.seen_one(gateway.catalogue, row)


class Offered(NamedTuple):
    """The methods that the buyer of an invoice may choose; amount and fee of each are computed when asked for."""

    methods: Sequence[Method] = ()
    # Returns an amount as text; empty while a rate is missing.
    amount: Callable[[Method], str] = lambda _method: ""
    # Returns the usual fee of a transfer, in the coin and rounded; empty while it is unknown.
    fee: Callable[[Method], str] = lambda _method: ""


def offered_for(gateway: Gateway, row: InvoiceRow) -> Offered:
    """Return the methods to choose from; none once one is chosen."""
    if row.status != "select":
        return Offered()
    terms, usable = load_terms(row.merchant_id, gateway.settings.standard_terms), gateway.availability.read()
    methods = pricing.offered_methods(gateway.catalogue, terms.accepted, usable.payments)

    def amount(method: Method) -> str:
        try:
            quote = invoice_plan.quote_choice(gateway.catalogue, usable.market, row, method, terms)
        except errors.DomainError:
            return ""
        return coin_text(gateway.catalogue, method[0], quote.payer_units)

    def fee(method: Method) -> str:
        units = usable.market.network_fees.get(method)
        return "" if not units else about(coin_text(gateway.catalogue, method[0], units))

    payable = invoice_plan.payable_methods(gateway.catalogue, usable.market, row, methods, terms)
    return Offered(payable, amount, fee)


def about(amount: str) -> str:
    """Round an amount to two digits, and more where it has more before the point."""
    value = Decimal(amount)
    return f"{round(value, max(0, FEE_DIGITS - 1 - value.adjusted())).normalize():f}"


def public_view(gateway: Gateway, shown: Shown, offered: Offered) -> dict[str, Any]:
    """Return the public payment object, with the methods to choose from while none is chosen."""
    return views.payment(
        gateway.catalogue, shown, pay_url=gateway.settings.pay_url, public=True, methods=offered.methods
    )


def read_payment(gateway: Gateway, call: Call) -> Reply:
    """Return a payment to the holder of its id."""
    shown = find(gateway, call.params["invoice_id"])
    view = public_view(gateway, shown, offered_for(gateway, shown.invoice))
    return Reply(body=envelope(msgspec.json.encode(view)), headers={"Cache-Control": "no-cache"})


def choice_message(call: Call) -> SelectMethod:
    """Return the actor's message for a buyer's choice."""
    choice = cast("MethodChoice", call.body)
    wanted = invoice_id(call.params["invoice_id"])
    return SelectMethod(invoice_id=wanted, currency=choice.currency, network=choice.network)


PUBLIC_EXAMPLE: Final = {name: value for name, value in EXAMPLE.items() if name not in PRIVATE}

SELECT: Final = Endpoint(
    path=f"{PATH}/select",
    name="selectMethod",
    tag="Payment page",
    summary="Choose coin and network",
    description="Sets coin, rate and address of a payment whose status is select. The expiry stays the same.",
    rights=PUBLIC,
    cors=True,
    limit="buyer",
    is_payment_page=True,
    request=MethodChoice,
    result=PublicPayment,
    actor=Actor(spec=SELECT_METHOD, message=choice_message),
    examples={"request": {"currency": "USDT", "network": "ethereum"}, "result": PUBLIC_EXAMPLE},
)

ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path=PATH,
        name="getPublicPayment",
        tag="Payment page",
        summary="Read a payment as its buyer",
        description="Poll it with If-None-Match: the answer is 304 while nothing changes.",
        rights=PUBLIC,
        cors=True,
        limit="public",
        is_payment_page=True,
        result=PublicPayment,
        reader=read_payment,
        cached=True,
        errors=(errors.PayNotFound,),
        examples={"result": PUBLIC_EXAMPLE},
    ),
    SELECT,
)
