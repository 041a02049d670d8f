"""Selects the addresses to probe, by a partial index."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import cast

import pytest

from core.catalogue.catalogue import load_catalogue
from models.db.base import execute, rows, run, transaction
from models.deposits import cursors, probes
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.invoices.rows import InvoiceRow
from tests.models.builders import Chain
from tests.models.invoices.builders import invoice


def due(network: str = "ethereum", currency: str = "ETH") -> list[str]:
    """Return the addresses of invoices that were not looked at yet."""
    return probes.due_invoices(network, family="evm", currency=currency, limit=10)


def still_due() -> list[str]:
    """Return the addresses whose balance has to be explained further."""
    return probes.due_open("ethereum", limit=10)


def look(of: InvoiceRow, read_by: str = "", *, at: tuple[int, datetime] | None = None) -> None:
    """Note a reading of an invoice's address. at: the height and time of the block up to which it was explained."""
    height, block_time = at or (None, None)
    probes.note_reading(
        "ethereum", of.address.lower(), kind="invoice", owner_id=of.id, height=height, block_time=block_time,
        read_by=read_by,
    )  # fmt: skip


def mined(chain: Chain, *, at: datetime) -> tuple[int, datetime]:
    """Scan another block of a time; return its height and time."""
    chain.mine(at=at)
    return chain.height, chain.time


def test_addresses_of_invoices_in_coin_are_due_until_their_first_look_however_late(database: str) -> None:
    del database
    assert due() == []
    Chain()
    coin, token = invoice(pay_currency="ETH"), invoice()
    address = coin.address.lower()
    assert due() == [address]
    assert token.address.lower() not in due()

    execute("UPDATE app_clock SET ahead = ahead + interval '1 day'")
    assert (due(), still_due()) == ([address], [])
    probes.note("ethereum", address, kind="invoice", owner_id=coin.id)
    assert (due(), still_due()) == ([], [address])


def test_an_address_is_due_until_two_providers_explain_it_long_after_the_end_of_its_invoice(chain: Chain) -> None:
    coin = invoice(pay_currency="ETH")
    address, end = coin.address.lower(), coin.expires_at + timedelta(seconds=probes.AFTERCARE_S)
    look(coin, "a", at=(chain.height, chain.time))
    assert still_due() == [], "the scan has not moved since"
    execute("UPDATE app_clock SET ahead = ahead + interval '1 day'")
    for number, read_by in enumerate("bab"):
        at = mined(chain, at=end + timedelta(seconds=number))
        assert still_due() == [address]
        look(coin, read_by, at=at)
    chain.mine()
    assert (due(), still_due()) == ([], [])


def test_an_invoice_that_reopens_is_looked_at_again(chain: Chain) -> None:
    coin = invoice(pay_currency="ETH")
    look(coin, at=mined(chain, at=coin.expires_at + timedelta(days=1)))
    chain.mine()
    assert (due(), still_due()) == ([], [])
    execute("UPDATE invoices SET expires_at = expires_at + interval '2 days'")
    assert due() == [coin.address.lower()]
    look(coin)
    assert (due(), still_due()) == ([], [coin.address.lower()])


def test_an_address_with_a_surplus_is_due_until_two_later_readings_explain_it(chain: Chain) -> None:
    def read_wallet(read_by: str, *, is_explained: bool) -> None:
        probes.note_reading(
            "ethereum", "0xaa", kind="wallet", read_by=read_by,
            height=chain.height if is_explained else None, block_time=chain.time if is_explained else None,
            surplus_at=None if is_explained else chain.time,
        )  # fmt: skip

    read_wallet("a", is_explained=False)
    assert still_due() == ["0xaa"]
    for read_by in "ba":
        chain.mine()
        assert still_due() == ["0xaa"]
        read_wallet(read_by, is_explained=True)
    chain.mine()
    assert still_due() == []

    probes.note("ethereum", "0xbb", kind="wallet", surplus_at=chain.time)
    assert still_due() == ["0xbb"]


@pytest.mark.usefixtures("chain")
def test_ended_invoices_that_were_looked_at_are_read_no_more() -> None:
    coin, other = (invoice(pay_currency="ETH") for _ in range(2))
    look(coin)
    execute("UPDATE invoices SET expires_at = expires_at - interval '1 minute' WHERE id = %s", (other.id,))
    mark = "SELECT app_now() - probed_until FROM chain_cursors"

    def passed() -> timedelta:
        probes.pass_invoices("ethereum", family="evm", currency="ETH")
        ((behind,),) = rows(mark)
        return cast("timedelta", behind)

    aftercare = timedelta(seconds=probes.AFTERCARE_S)
    assert abs(passed() - aftercare) < timedelta(minutes=1)
    execute("UPDATE app_clock SET ahead = ahead + interval '1 day'")
    assert passed() > timedelta(hours=20), "one was not looked at yet"
    assert due() == [other.address.lower()]
    look(other)
    assert abs(passed() - aftercare) < timedelta(minutes=1)
    execute("UPDATE app_clock SET ahead = ahead + interval '9 minutes'")
    assert passed() > aftercare + timedelta(minutes=8), "the mark moves rarely"
    execute("UPDATE balance_probes SET due_until = NULL")
    assert due() == []


def test_an_address_explained_up_to_the_scan_is_not_due_before_the_scan_moves(chain: Chain) -> None:
    coin = invoice(pay_currency="ETH")
    look(coin, at=(chain.height, chain.time))
    assert still_due() == []

    chain.mine()
    assert still_due() == [coin.address.lower()]


def test_addresses_probed_longest_ago_come_first(chain: Chain) -> None:
    first, second, third = (invoice(pay_currency="ETH") for _ in range(3))
    for each in (third, first, second):
        look(each)
        execute("UPDATE app_clock SET ahead = ahead + interval '1 second'")
    chain.mine()

    assert still_due() == [each.address.lower() for each in (third, first, second)]


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
                " AND i.expires_at > ("
                "   SELECT COALESCE(probed_until, '-infinity') FROM chain_cursors WHERE network = %s)",
                (network.code, network.native, network.code),
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


def test_a_reorg_below_an_explained_block_makes_its_address_due_again(chain: Chain) -> None:
    coin = invoice(pay_currency="ETH")
    look(coin, at=mined(chain, at=coin.expires_at + timedelta(days=1)))
    chain.mine()
    probes.fall_back("ethereum", chain.height - 1)
    assert still_due() == []
    probes.fall_back("ethereum", chain.height - 2)
    assert still_due() == [coin.address.lower()]
    assert rows("SELECT explained_until, read_until FROM balance_probes") == [(None, None)]


def test_the_provider_that_read_a_block_again_last_is_known(chain: Chain) -> None:
    del chain
    assert probes.reread_by("ethereum", "0xaa") == ""
    for mark in ("a", "b"):
        probes.note_rereading("ethereum", "0xaa", kind="wallet", read_by=mark)
        assert probes.reread_by("ethereum", "0xaa") == mark


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
