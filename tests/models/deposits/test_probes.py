"""Selects the addresses to probe, by a partial index."""

from __future__ import annotations

from core.catalogue.catalogue import load_catalogue
from models.db.base import execute, rows, run
from models.deposits import cursors, probes
from tests.models.builders import Chain
from tests.models.invoices.builders import invoice


def due(network: str = "ethereum", currency: str = "ETH") -> list[str]:
    return probes.due_invoices(network, family="evm", currency=currency, limit=10)


def test_addresses_of_open_and_recently_ended_invoices_in_coin_are_due(database: str) -> None:
    del database
    Chain()
    coin, token = invoice(pay_currency="ETH"), invoice()
    assert due() == [coin.address.lower()]
    assert token.address.lower() not in due()

    execute("UPDATE app_clock SET ahead = ahead + interval '2 hours'")
    assert due() == [coin.address.lower()]
    execute("UPDATE app_clock SET ahead = ahead + interval '2 hours'")
    assert due() == []


def test_an_address_explained_up_to_the_scan_is_not_due_before_the_scan_moves(chain: Chain) -> None:
    coin = invoice(pay_currency="ETH")
    probes.note("ethereum", coin.address.lower(), kind="invoice", height=chain.height)
    assert due() == []

    chain.mine()
    assert due() == [coin.address.lower()]


def test_addresses_probed_longest_ago_come_first(chain: Chain) -> None:
    first, second, third = (invoice(pay_currency="ETH").address.lower() for _ in range(3))
    for address in (first, third):
        probes.note("ethereum", address, kind="invoice", height=None)
        execute("UPDATE app_clock SET ahead = ahead + interval '1 second'")
    chain.mine()

    assert due() == [second, first, third]


def test_every_coin_of_the_catalogue_is_served_by_the_partial_index(database: str) -> None:
    del database
    assert cursors.read("ethereum") is None
    execute("SET enable_seqscan = off")
    for network in load_catalogue("production").networks.values():
        if network.family != "evm" or network.native is None:
            continue
        plan = "\n".join(
            row[0]
            for row in run(
                "EXPLAIN SELECT 1 FROM invoices i WHERE i.network = %s AND i.pay_currency = %s"
                " AND i.expires_at > app_now() - make_interval(secs => 7200)",
                (network.code, network.native),
            ).fetchall()
        )
        assert "invoices_in_coin" in plan, plan
    execute("RESET enable_seqscan")
    assert rows("SELECT 1") == [(1,)]
