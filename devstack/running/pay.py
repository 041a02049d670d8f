"""`sluice dev pay`: pays a payment of a running development stack, as its buyer would. Added by devstack.dev."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from cli.output import CommandError, JsonFlag, show
from core.catalogue.catalogue import Pair, load_catalogue
from core.http.egress import is_loopback
from core.ids import is_uuid
from core.money import parse_units
from devstack.running.asking import ask, order
from devstack.running.commands import FolderOption, open_stack
from devstack.running.state import RunningStack
from models.db import base

TIMES_MAX: Final = 100
ORDER: Final = (
    "SELECT i.id::text, m.name FROM invoices i JOIN merchants m ON m.id = i.merchant_id"
    " WHERE i.order_id = %s ORDER BY i.is_final, i.created_at DESC, i.id DESC LIMIT 20"
)
# The refusal by status, where no amount is named: another payment would be a mistake, or a test of one.
_REFUSED: Final[Mapping[str, str]] = {
    "paid": "is paid",
    "paid_over": "is paid, with more than it asks",
    "expired": "is expired",
    "wrong_amount": "ended with a wrong amount",
}


def pay(
    ctx: typer.Context,
    payment: Annotated[str, typer.Argument(help="Its number, the address of its page, or its order_id.")],
    *,
    amount: Annotated[
        str | None, typer.Option(help="In the coin, as 12.5.", show_default="the amount that is missing")
    ] = None,
    coin: Annotated[str | None, typer.Option(help="The coin to choose, or another one to send.")] = None,
    network: Annotated[str | None, typer.Option(help="The network to choose, or another one to send on.")] = None,
    times: Annotated[int, typer.Option(min=1, max=TIMES_MAX, help="Send it this often.")] = 1,
    data: FolderOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Pay a payment of the stack with a real transfer on its chain."""
    stack = open_stack(ctx, data)
    number = _number(stack, payment)
    shown = _read(stack, number)
    if not shown["address"]:
        shown = _choose(stack, shown, coin, network)
    pair = _pair(stack, shown, coin, network)
    units = _units(shown, pair, amount)
    sent = [_send(stack, shown, pair, units) for _ in range(times)]
    each = f"{_text(units, pair)} {pair.currency} on {pair.network}"
    document = {
        "uuid": number, "currency": pair.currency, "network": pair.network, "amount": _text(units, pair),
        "address": shown["address"], "txids": sent, "url": shown["url"],
    }  # fmt: skip
    lines = [f"sent {each} to {shown['address']}: transaction {txid}" for txid in sent]
    show(document, [*lines, f"page: {shown['url']}"], as_json=as_json)


def _number(stack: RunningStack, text: str) -> str:
    """Return a payment's number. Raises CommandError for an order or page that the stack does not have."""
    if is_uuid(text.lower()):
        return text.lower()
    if "://" in text:
        return _number_of_page(stack, text)
    with _database(stack):
        rows = base.rows(ORDER, (text,))
    if not rows:
        raise CommandError(f"no payment of this stack has the order_id {text}")
    merchants = {name for _, name in rows}
    if len(merchants) > 1:
        raise CommandError(f"{len(merchants)} merchants have an order {text}: name the payment by its number")
    return str(rows[0][0])


def _number_of_page(stack: RunningStack, text: str) -> str:
    with contextlib.suppress(ValueError):
        page, own = urlsplit(text), urlsplit(str(stack.ready["pay_url"]))
        *_, kind, number = ["", "", *page.path.rstrip("/").split("/")]
        if not is_loopback(page.hostname or "") or page.port != own.port:
            raise CommandError(
                f"{text} is not this stack's, which serves {own.geturl()}: name the other one's folder by --data"
            )
        if kind == "pay" and is_uuid(number):
            return number
    raise CommandError(f"{text} is no page of a payment, which is {stack.ready['pay_url']}/pay/ and its number")


def _read(stack: RunningStack, number: str) -> dict[str, Any]:
    shown = ask(stack, "GET", f"/v1/pay/{number}")
    if shown is None:
        raise CommandError(f"this stack has no payment {number}; another stack's needs --data")
    return shown


def _choose(stack: RunningStack, shown: dict[str, Any], coin: str | None, network: str | None) -> dict[str, Any]:
    """Choose a coin and network as the buyer does: the first offered that the options allow. Raises CommandError."""
    if shown["payment_status"] != "select":
        raise CommandError(f"the payment {_REFUSED[shown['payment_status']]}, without an address: make another")
    offered = [(one["currency"], one["network"]) for one in shown.get("accepted", ())]
    fitting = [one for one in offered if one[0] == (coin or one[0]) and one[1] == (network or one[1])]
    if not fitting:
        named = ", ".join(f"{one} on {place}" for one, place in offered) or "nothing"
        raise CommandError(f"the payment offers no {coin or 'coin'} on {network or 'any network'}; it offers {named}")
    choice: dict[str, object] = {"currency": fitting[0][0], "network": fitting[0][1]}
    ask(stack, "POST", f"/v1/pay/{shown['uuid']}/select", choice)
    return _read(stack, shown["uuid"])


def _pair(stack: RunningStack, shown: Mapping[str, Any], coin: str | None, network: str | None) -> Pair:
    """Return the coin to send, the payment's own or another. Raises CommandError if the stack cannot send it there."""
    catalogue, code = load_catalogue("development"), network or shown["network"]
    pair = catalogue.pair(coin or shown["payer_currency"], code)
    if pair is None:
        raise CommandError(f"there is no {coin or shown['payer_currency']} on {code}; see /v1/pay for what is offered")
    if code not in stack.ready["rpc"]:
        served = ",".join([*stack.ready["rpc"], code])
        raise CommandError(f"this stack does not run {code}: start it with --networks {served}")
    if catalogue.networks[code].family != catalogue.networks[shown["network"]].family:
        raise CommandError(f"{code} has no address {shown['address']}, which is one of {shown['network']}")
    return pair


def _units(shown: Mapping[str, Any], pair: Pair, amount: str | None) -> int:
    """Return the amount to send, in the network's units. Raises CommandError."""
    if amount is not None:
        units = parse_units(amount, digits=pair.decimals, error=CommandError)
        if not units:
            raise CommandError("the amount is 0: name a positive one, as --amount 12.5")
        return units
    if pair.method != (shown["payer_currency"], shown["network"]):
        raise CommandError(f"the payment asks for no {pair.currency} on {pair.network}: name an amount by --amount")
    refused = _REFUSED.get(shown["payment_status"])
    if refused:
        raise CommandError(f"the payment {refused}: --amount sends to its address all the same")
    units = math.ceil(Decimal(shown["amount_remaining"] or 0).scaleb(pair.decimals))
    if not units:
        raise CommandError("the payment misses nothing, and waits for confirmations: --amount sends more")
    return units


def _send(stack: RunningStack, shown: Mapping[str, Any], pair: Pair, units: int) -> str:
    done = order(stack, "pay", network=pair.network, currency=pair.currency, to=shown["address"], units=units)
    return str(done["txid"])


def _text(units: int, pair: Pair) -> str:
    return f"{Decimal(units).scaleb(-pair.decimals).normalize():f}"


@contextlib.contextmanager
def _database(stack: RunningStack) -> Iterator[None]:
    base.connect(stack.settings["DATABASE_URL"], application_name="sluice-cli")
    try:
        yield
    finally:
        base.close()
