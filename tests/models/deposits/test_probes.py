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
    probes.note_reading("ethereum", coin.address.lower(), kind="invoice", height=chain.height)
    assert due() == []

    chain.mine()
    assert due() == [coin.address.lower()]


def test_addresses_probed_longest_ago_come_first(chain: Chain) -> None:
    first, second, third = (invoice(pay_currency="ETH").address.lower() for _ in range(3))
    for address in (first, third):
        probes.note("ethereum", address, kind="invoice")
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


def read(*readings: tuple[str, int | None]) -> int | None:
    """Note readings of an address's balance, by provider and height; return the height up to which it is explained."""
    for read_by, height in readings:
        probes.note_reading("ethereum", "0xaa", kind="wallet", height=height, read_by=read_by)
    return probes.explained_height("ethereum", "0xaa")


def test_two_providers_in_a_row_explain_a_balance(chain: Chain) -> None:
    del chain
    assert read(("a", 5)) is None
    assert read(("a", 6)) is None
    assert read(("b", 8)) == 6
    assert read(("b", 9)) == 6
    assert read(("a", None)) == 6
    assert read(("b", 10)) == 6
    assert read(("a", 7)) == 6
    assert read(("b", 12)) == 7
    assert read(("", 11)) == 11
    assert probes.longest_ago_first("ethereum", ["0xbb", "0xaa"]) == {"0xbb": "", "0xaa": ""}
    assert read(("a", 12)) == 11
    assert probes.longest_ago_first("ethereum", ["0xaa"]) == {"0xaa": "a"}


def test_a_look_without_an_answer_keeps_what_is_known(chain: Chain) -> None:
    del chain
    assert read(("a", 5), ("b", 6)) == 5
    probes.note("ethereum", "0xaa", kind="wallet")
    assert read(("a", 8)) == 6


def test_a_balance_falls_back_at_one_address_alone(chain: Chain) -> None:
    del chain
    assert read(("a", 5), ("b", 9)) == 5
    probes.note_reading("ethereum", "0xbb", kind="wallet", height=9)
    probes.note_reading("ethereum", "0xcc", kind="wallet", height=9, read_by="a")
    probes.fall_back("ethereum", 7, address="0xaa")
    probes.fall_back("ethereum", 7, address="0xcc")
    heights = "SELECT address, height, read_height FROM balance_probes ORDER BY address"
    assert rows(heights) == [("0xaa", 5, 7), ("0xbb", 9, 9), ("0xcc", None, 7)]
    probes.fall_back("ethereum", 4)
    assert rows(heights) == [("0xaa", 4, 4), ("0xbb", 4, 4), ("0xcc", None, 4)]
    probes.fall_back("polygon", 1)
    assert rows(heights)[1] == ("0xbb", 4, 4)


def test_an_address_that_one_provider_has_explained_is_due_with_the_next_block(chain: Chain) -> None:
    coin = invoice(pay_currency="ETH").address.lower()
    probes.note_reading("ethereum", coin, kind="invoice", height=chain.height, read_by="a")
    assert due() == []
    chain.mine()
    assert due() == [coin]


def test_returned_coin_is_looked_for_until_two_providers_have_explained_it(chain: Chain) -> None:
    old, _ = reversed_twice(chain)

    def again(height: int) -> list[str]:
        return probes.due_again("ethereum", scanned=height, further=1, limit=9)

    height = old.block_height + 1
    assert again(height) == [old.address]
    probes.note_reading("ethereum", old.address, kind="invoice", height=height, read_by="a")
    assert again(height) == []
    assert again(height + 1) == [old.address]
    probes.note_reading("ethereum", old.address, kind="invoice", height=height + 1, read_by="b")
    assert again(height + 2) == []


def payment_denied(of: Deposit, *, units: int, is_denied: bool) -> Deposit:
    """Return a payment to the address of a hidden deposit that was taken back, by providers' denial or a reorg."""
    payment = of.but(ordinal="native", txid="0x" + "dd" * 32, amount_units=units)
    with transaction():
        assert deposits.record(payment)
    execute(
        "INSERT INTO deposit_quorums (deposit_id, round, network, reason, is_denied)"
        " SELECT id, round, network, 'amount', %s FROM deposits WHERE txid = %s",
        (is_denied, payment.txid),
    )
    execute("UPDATE deposits SET status = 'reversed' WHERE txid = %s", (payment.txid,))
    return payment


@pytest.mark.parametrize("is_denied", [True, False])
@pytest.mark.parametrize("is_paid_out", [True, False])
def test_a_denied_payment_returns_as_the_deposit_that_was_paid_out_of_its_coin(
    chain: Chain, monkeypatch: pytest.MonkeyPatch, *, is_denied: bool, is_paid_out: bool
) -> None:
    old, new = reversed_twice(chain)
    execute("UPDATE deposits SET amount_units = 9 WHERE txid = %s", (new.txid,))
    read = probes.taken_back
    monkeypatch.setattr(
        probes, "taken_back", lambda *key: [each._replace(is_paid_out=is_paid_out) for each in read(*key)]
    )
    payment = payment_denied(old, units=9, is_denied=is_denied)
    of_payment = "SELECT id FROM deposits WHERE txid = %s AND ordinal = 'native'"
    own, shared = rows(of_payment, (payment.txid,)), rows("SELECT id FROM deposits WHERE txid = %s", (new.txid,))
    with transaction():
        assert not probes.covers(payment, is_witnessed=True)
        assert deposits.record(payment)
    assert rows(of_payment, (payment.txid,)) == (shared if is_denied and is_paid_out else own)
    assert rows("SELECT count(*) FROM deposits") == [(3,)]
