"""A gateway for checkouts: rates, two networks, a pool of addresses, and links in the database."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from actors.payment_links.calls import create_payment_link, toggle_payment_link
from core.http.requests import read_request
from core.payment_links.schemas import CreatePaymentLink
from models.db.base import execute, value
from models.queue.calls import CallInfo
from tests.actors.asking import ask, configure
from tests.models.addresses.test_pool import PUBLIC_KEY, add_chunk
from tests.models.builders import begin_scans
from tests.models.queue.builders import info

IN_USDT: Final = {"currency": "USDT", "network": "ethereum"}


def open_gateway(database: str, **env: str) -> None:
    """Configure the actors with rates and 128 addresses, one of them reserved for signed calls."""
    configure(database, **{"ADDRESS_PUBLIC_KEY": PUBLIC_KEY, "POOL_LOW": "2"} | env)


def fill(database: str) -> None:
    """Write the rows of that gateway."""
    open_gateway(database)
    begin_scans()
    for chunk in range(2):
        add_chunk(chunk)
    for currency, usd in {"USD": 1, "USDT": 1, "ETH": 3000}.items():
        execute(
            "INSERT INTO rates (currency, usd, source, quoted_at) VALUES (%s, %s, 'test', app_now())", (currency, usd)
        )


def link(merchant_id: UUID, **fields: Any) -> UUID:
    """Return the id of a new link, of 10 USD by default."""
    asked = {"amount_mode": "fixed", "currency": "USD", "amount_fixed": "10"} | fields
    body = read_request(CreatePaymentLink, asked, own_hosts=frozenset())
    return UUID(ask(create_payment_link, info(merchant_id), body)["link_id"])


def switch(merchant_id: UUID, link_id: UUID, *, active: bool) -> None:
    """Enable or disable a link as its merchant does."""
    ask(toggle_payment_link, info(merchant_id), {"link_id": str(link_id), "active": active})


def buyers_call() -> CallInfo:
    """Return a call without a key, as a buyer's is."""
    return info(None)


def sold(link_id: UUID) -> int:
    """Count a link's payments."""
    return int(value("SELECT count(*) FROM invoices WHERE link_id = %s", (link_id,)))


def free_addresses() -> int:
    """Count the addresses that returned to the pool."""
    return int(value("SELECT count(*) FROM address_returns WHERE taken_at IS NULL"))
