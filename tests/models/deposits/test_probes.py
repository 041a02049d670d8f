"""Selects the addresses to probe, by a partial index."""

from __future__ import annotations

import pytest

from core.catalogue.catalogue import load_catalogue
from models.db.base import execute, rows, run, transaction
from models.deposits import cursors, probes
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
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


def reversed_twice(chain: Chain) -> tuple[Deposit, Deposit]:
    """Return two hidden deposits of one sum at one address that a reorg took back, older first."""
    to = invoice(pay_currency="ETH")
    old, new = (
        chain._placed(chain.transfer(to, 7, currency="ETH")).but(ordinal=f"trace:{place}") for place in range(2)
    )
    for each in (old, new):
        with transaction():
            assert deposits.record(each)
        execute("UPDATE app_clock SET ahead = ahead + interval '1 second'")
    execute("UPDATE deposits SET status = 'reversed'")
    return old, new


@pytest.mark.parametrize("is_paid_out", [False, True])
def test_returned_coin_has_the_deposit_that_was_paid_out_before_older_ones(
    chain: Chain, monkeypatch: pytest.MonkeyPatch, *, is_paid_out: bool
) -> None:
    old, new = reversed_twice(chain)
    read = probes.taken_back
    monkeypatch.setattr(
        probes,
        "taken_back",
        lambda *key: [each._replace(is_paid_out=is_paid_out and each.txid == new.txid) for each in read(*key)],
    )
    deposit = old.but(txid="0x" + "cc" * 32)
    with transaction():
        probes.name_again(deposit)
    kept = old if is_paid_out else new
    assert sorted(rows("SELECT txid FROM deposits")) == sorted([(deposit.txid,), (kept.txid,)])


def test_an_invented_trace_takes_no_deposit_of_another_owner(chain: Chain) -> None:
    old, _ = reversed_twice(chain)
    other = invoice(pay_currency="ETH")
    with transaction():
        assert not deposits.record(old.but(owner_id=other.id, address=other.address.lower()))
        assert not deposits.record(old.but(address=other.address.lower()))
        assert deposits.record(old)
        assert deposits.record(old.but(ordinal="native", txid="0x" + "dd" * 32))
    execute("UPDATE deposits SET status = 'reversed'")
    # The chain's state decides whom the transaction itself pays.
    with transaction():
        assert deposits.record(
            old.but(ordinal="native", txid="0x" + "dd" * 32, owner_id=other.id, address=other.address.lower())
        )


def test_each_deposit_without_a_transaction_has_a_name_of_its_own(chain: Chain) -> None:
    deposit = chain._placed(chain.transfer(invoice(pay_currency="ETH"), 7, currency="ETH")).but(txid="")
    names = []
    for _ in range(3):
        names.append(probes.ordinal(deposit.network, deposit.address, 5))
        with transaction():
            assert deposits.record(deposit.but(ordinal=names[-1]))
    # A transaction that is known later gives its name.
    execute("UPDATE deposits SET txid = 'x' WHERE ordinal = %s", (names[0],))
    names.append(probes.ordinal(deposit.network, deposit.address, 5))
    assert [name.removeprefix(f"probe:{deposit.address}:5") for name in names] == ["", ":1", ":2", ""]
    assert probes.ordinal(deposit.network, deposit.address, 51).endswith(":51")


def test_a_balance_rises_at_an_address_that_was_never_noted_too(chain: Chain) -> None:
    del chain
    for height, explained in ((7, 7), (5, 7)):
        probes.rise("ethereum", "0xaa", kind="wallet", height=height)
        assert probes.explained_height("ethereum", "0xaa") == explained
