"""Guards of the treasury's rows, each shown by the fault that it prevents."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest

from core.ids import uuid7
from models.db.base import execute, rows, transaction
from models.deposits import probes
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.ledger.ledger import CUSTODY, EQUITY, GATEWAY, Account
from models.payouts import order_checks
from models.spends.unexplained import Part
from models.treasury import addresses, reconciliation, sweeps, topups
from models.treasury.reconciliation import Finding, Flow
from models.treasury.rows import Topup
from models.treasury.sweeps import Unswept
from tests.models.builders import USDT, Chain, assert_sound, merchant
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import invoice, paid
from tests.models.ledger.figures import net_of
from tests.models.spends.departures import a_departure
from tests.models.treasury.builders import COLD, HOT, pin_hot, spend, topup, topup_rows

pytestmark = pytest.mark.usefixtures("database")

DEPOSIT = "0x" + "dd" * 20
IN_NO_BLOCK: dict[str, Any] = {"block_height": None, "block_hash": None}
STRANGER = "0x" + "66" * 20
EQUITY_ETH = Account(GATEWAY, EQUITY, "ETH")
CUSTODY_ETH = Account(GATEWAY, CUSTODY, "ETH", "ethereum")


def seen(chain: Chain, units: int, *, txid: str = "", **fields: Any) -> Topup:
    """Return a top-up in a chain's newest block; without a txid only the balance shows it."""
    plain: dict[str, Any] = {
        "id": uuid7(),
        "network": chain.network.code,
        "txid": txid,
        "ordinal": "native" if txid else topups.balance_ordinal("ETH", chain.height),
        "currency": "ETH",
        "units": units,
        "sender": "0xoperator" if txid else "",
        "address": HOT,
        "origin": "transfer" if txid else "balance",
        "block_height": chain.height,
        "block_hash": chain._hash(),
    }
    return Topup(**plain | fields)


# Top-ups ----------------------------------------------------------------------------------------------------


def test_a_counted_balance_covers_its_network_and_coin_up_to_its_block(chain: Chain) -> None:
    here = chain.height
    with transaction():
        assert topups.record(seen(chain, 7))
        assert topups.record(seen(chain, 7, txid="0xlater", block_height=here + 1))
        assert topups.record(seen(chain, 7, txid="0xbsc", network="bsc"))
        assert topups.record(seen(chain, 7, txid="0xtoken", currency="USDT"))
        assert not topups.record(seen(chain, 7, txid="0xsame"))
    assert sorted(topup_rows("txid")) == [("0xbsc",), ("0xlater",), ("0xsame",), ("0xtoken",)]


def test_a_known_transfer_does_not_name_a_counted_balance(chain: Chain) -> None:
    known = topup(chain, 7)
    chain.mine()
    with transaction():
        assert topups.record(seen(chain, 7))
        assert not topups.record(known)
    assert topup_rows("txid") == [(known.txid,), ("",)]


def test_a_balance_that_a_reorg_took_covers_nothing(chain: Chain) -> None:
    chain.mine()
    with transaction():
        assert topups.record(seen(chain, 7))
    chain.fork(1)
    assert topups.reverse_orphans("ethereum") == 1
    chain.mine()
    with transaction():
        assert topups.record(seen(chain, 7, txid="0xagain"))


def test_a_live_top_up_is_written_once(chain: Chain) -> None:
    known = topup(chain, 7)
    with transaction():
        assert not topups.record(known.but(units=9))
    assert topup_rows("units", "round") == [(7, 1)]


def test_two_workers_book_a_top_up_once_and_reverse_it_once(chain: Chain) -> None:
    chain.mine()
    topup(chain, 7)
    ((topup_id,),) = topup_rows("id")
    # As a worker that read the row before the other one was done.
    assert [topups._book(topup_id) for _ in range(2)] == [True, False]
    assert net_of(EQUITY_ETH) == 7
    chain.fork(1)
    assert [topups._reverse("ethereum", topup_id) for _ in range(2)] == [True, False]
    assert (net_of(EQUITY_ETH), net_of(CUSTODY_ETH)) == (0, 0)


def test_only_a_booked_top_up_is_reversed(chain: Chain) -> None:
    chain.mine()
    topup(chain, 7)
    topup(chain, 3, origin="cold")
    execute("UPDATE treasury_topups SET status = 'booked' WHERE origin = 'cold'")
    chain.fork(1)
    assert topups.reverse_orphans("ethereum") == 2
    assert (net_of(EQUITY_ETH), net_of(CUSTODY_ETH)) == (0, 0)
    assert_sound()


def test_a_network_books_only_its_own_top_ups() -> None:
    ethereum, bsc = Chain(), Chain("bsc")
    topup(bsc, 7)
    bsc.mine(ethereum.network.maturity)
    assert topups.book_matured(ethereum.network, limit=9) == 0
    assert topup_rows("status") == [("pending",)]


# Addresses and moves ----------------------------------------------------------------------------------------


def test_only_a_cold_address_of_the_network_counts_as_cold() -> None:
    pin_hot()
    assert addresses.set_cold("ethereum", COLD)
    assert addresses.is_cold("ethereum", COLD)
    assert not addresses.is_cold("ethereum", HOT)
    assert not addresses.is_cold("bsc", COLD)
    # Setting or removing a cold address never touches the hot one.
    assert addresses.set_cold("ethereum", None)
    assert addresses.address("ethereum", "hot") == HOT


def test_own_spends_explain_an_address_only_on_their_network(chain: Chain) -> None:
    block = (chain.height, chain._hash())
    for network in ("ethereum", "bsc"):
        spend(network=network, recipient=DEPOSIT, token_units=1_000, mined=block)
        spend(network=network, purpose="sweep", sender=DEPOSIT, recipient=HOT, token_units=300, mined=block)
    spend(recipient=DEPOSIT, token_units=50, mined=block, is_success=False)
    spend(recipient=DEPOSIT, currency="USDT", token_units=70, mined=block)
    assert addresses.moved_native_units("ethereum", DEPOSIT, "ETH", height=chain.height) == 700


@pytest.mark.parametrize(
    ("columns", "moving"),
    [
        ({}, True),
        ({"state": "dead"}, False),
        ({"settled": True}, False),
        ({"network": "bsc"}, False),
        ({"mined": "here"}, False),
        ({"mined": "elsewhere"}, True),
        ({"mined": "elsewhere", "settled": True}, False),
        ({"mined": "ahead"}, True),
    ],
)
@pytest.mark.parametrize("side", ["sender", "recipient"])
def test_an_address_is_in_motion_while_its_spend_has_no_certain_block(
    chain: Chain, side: str, columns: dict[str, Any], *, moving: bool
) -> None:
    ends: dict[str, Any] = {"sender": STRANGER, "recipient": STRANGER} | {side: DEPOSIT}
    columns = dict(columns)
    place, is_settled = columns.pop("mined", None), columns.pop("settled", False)
    height = chain.height + (place == "ahead")
    mined = None if place is None else (height, chain._hash() if place == "here" else "0xreplaced")
    made = spend(token_units=1, mined=mined, **ends, **columns)
    if is_settled:
        execute("UPDATE spends SET settled_at = app_now() WHERE id = %s", (made,))
    assert addresses.is_in_motion("ethereum", [DEPOSIT]) is moving


@pytest.mark.parametrize(
    ("columns", "moving"),
    [
        ({"sender": DEPOSIT}, True),
        ({"recipient": DEPOSIT}, True),
        ({"outputs": [Part(STRANGER, 1).to_json(), Part(DEPOSIT, 2).to_json()]}, True),
        ({"recipient": DEPOSIT, **IN_NO_BLOCK}, True),
        ({"recipient": STRANGER}, False),
        ({"recipient": DEPOSIT, "network": "bsc"}, False),
        ({"sender": DEPOSIT, "claim": "window", "slot": None, "status": "unread"}, True),
        ({"sender": DEPOSIT, "claim": "window", "slot": None, "status": "unread", **IN_NO_BLOCK}, False),
        ({"recipient": DEPOSIT, "status": "dismissed", "settled_at": datetime.now(UTC), **IN_NO_BLOCK}, False),
    ],
)
def test_an_address_is_in_motion_while_a_departure_that_concerns_it_is_unexplained(
    columns: dict[str, Any], *, moving: bool
) -> None:
    """Gas by a spend that the database lost would else count as a payment that a contract passed on."""
    assert a_departure(id=uuid7(), **columns).write() == 1

    assert addresses.is_in_motion("ethereum", [DEPOSIT]) is moving


# Sweeps -----------------------------------------------------------------------------------------------------


def two_networks() -> tuple[str, Unswept]:
    """Pay 10 on ethereum, then 1 of another coin and 2 on another network to the same address."""
    chain = Chain()
    made = paid(chain, invoice())
    address = made.address.lower()
    bsc = Chain("bsc")
    bsc.pay(made, 2 * USDT, stray="network")
    chain.pay(made, USDT, currency="DAI", stray="asset")
    execute("UPDATE deposits SET status = 'credited'")
    # Not confirmed.
    chain.pay(made, 5 * USDT)
    unswept = next(each for each in sweeps.unswept("ethereum", family="evm", limit=9) if each.currency == "USDT")
    return address, unswept


def test_a_sweep_takes_confirmed_deposits_of_its_coin_and_network() -> None:
    address, unswept = two_networks()
    assert unswept.units == 10 * USDT
    assert [each.units for each in sweeps.unswept_at("ethereum", "USDT", address, height=10**9)] == [10 * USDT]
    assert sweeps.unswept_at("ethereum", "USDT", address, height=1) == []
    with transaction():
        spend_id = uuid7()
        assert sweeps.take("ethereum", unswept, spend_id)
        spend(purpose="sweep", sender=address, recipient=HOT, currency="USDT", token_units=1, id=spend_id)
    assert rows("SELECT amount_units FROM deposits WHERE sweep_id = %s", (spend_id,)) == [(10 * USDT,)]
    assert sweeps.unswept_at("ethereum", "USDT", address, height=10**9) == []
    # Deposits of another sweep are neither taken nor returned.
    with transaction():
        assert not sweeps.take("ethereum", unswept, uuid7())
    with transaction():
        sweeps._give_back(None, _SpendOf(uuid7()), None)  # type: ignore[arg-type]
    assert rows("SELECT count(*) FROM deposits WHERE sweep_id = %s", (spend_id,)) == [(1,)]


@dataclasses.dataclass
class _SpendOf:
    """The fields of a spend that returning deposits reads."""

    id: object


def test_spends_and_payouts_of_another_network_do_not_count_here() -> None:
    spend(network="bsc", purpose="sweep", sender=DEPOSIT, recipient=HOT, token_units=1)
    spend(network="bsc", purpose="cold", recipient=COLD, token_units=1)
    payout(network="bsc")
    assert sweeps.busy_addresses("ethereum") == set()
    assert sweeps.cooling("ethereum") == set()
    assert sweeps.open_payout_units("ethereum") == {}
    assert sweeps.wanted_currencies("ethereum") == set()


def test_an_address_is_busy_until_inclusion_and_a_coin_until_confirmation() -> None:
    block = (7, "0xblock")
    spend(recipient="0xgas", token_units=1)
    spend(purpose="sweep", sender="0xsigned", recipient="0xgas", token_units=1, state="signed")
    spend(recipient="0xincluded", token_units=1, mined=block)
    spend(purpose="cold", recipient=COLD, token_units=1, mined=block)
    spend(purpose="cold", recipient=COLD, currency="USDT", token_units=1)
    spend(purpose="cold", recipient=COLD, currency="DAI", token_units=1, mined=block, state="confirmed")
    assert sweeps.busy_addresses("ethereum") == {HOT, "0xgas", "0xsigned"}
    assert sweeps.cooling("ethereum") == {"ETH", "USDT"}


def payout(*, network: str = "ethereum", status: str = "approved", reason: str = "too little") -> None:
    """Write a payout of one unit of USDT."""
    number = str(uuid7())
    execute(
        "INSERT INTO payouts (id, merchant_id, order_id, kind, hold_reference, currency, network, address,"
        " amount_units, fee_units, to_units, held_units, is_fee_on_top, status, created_by, due_at, wait_reason)"
        " VALUES (%s, %s, %s, 'payout', %s, 'USDT', %s, '0xto', 1, 0, 1, 1, true, %s, 'test', app_now(), %s)",
        (uuid7(), merchant(), number, f"hold:{number}", network, status, reason),
    )


@pytest.mark.parametrize("status", ["awaiting_cosign", "approved", "broadcasting", "sent"])
def test_payouts_that_may_still_leave_keep_their_sum_in_the_hot_wallet(status: str) -> None:
    payout(status=status)
    assert sweeps.open_payout_units("ethereum") == {"USDT": 1}


def test_only_postponed_payouts_lower_the_minimum_of_sweeps() -> None:
    payout(reason="")
    payout(status="sent")
    payout(status="cancelled")
    assert sweeps.wanted_currencies("ethereum") == set()
    assert sweeps.open_payout_units("ethereum") == {"USDT": 2}


@pytest.mark.parametrize(
    ("columns", "wakes"),
    [
        ({}, True),
        ({"refused_since": "app_now()"}, False),
        ({"wait_reason": "''"}, False),
        ({"network": "'bsc'"}, False),
        ({"currency": "'DAI'"}, False),
    ],
)
def test_arrived_coin_wakes_payouts_that_waited_for_it(columns: dict[str, str], *, wakes: bool) -> None:
    payout()
    changed = "".join(f", {name} = {value}" for name, value in columns.items())
    execute(f"UPDATE payouts SET due_at = app_now() + interval '1 hour'{changed}")
    sweeps._wake_payouts(None, _Swept(is_success=False))  # type: ignore[arg-type]
    assert rows("SELECT due_at <= app_now() FROM payouts") == [(False,)]
    sweeps._wake_payouts(None, _Swept())  # type: ignore[arg-type]
    assert rows("SELECT due_at <= app_now() FROM payouts") == [(wakes,)]


@dataclasses.dataclass
class _Swept:
    """The fields of a sweep that waking payouts reads."""

    network: str = "ethereum"
    currency: str = "USDT"
    is_success: bool = True


def test_former_treasury_addresses_are_refused_as_destinations() -> None:
    pin_hot()
    assert addresses.set_cold("ethereum", COLD)
    assert addresses.set_cold("ethereum", None)
    assert [order_checks.is_internal("evm", address) for address in (HOT, COLD, STRANGER)] == [True, True, False]


def test_gas_is_counted_by_recipient_within_the_hour() -> None:
    spend(recipient=DEPOSIT, token_units=1)
    spend(recipient=DEPOSIT, token_units=1, state="dead")
    spend(recipient=STRANGER, token_units=1)
    spend(recipient=DEPOSIT, token_units=1, network="bsc")
    assert sweeps.fundings_lately("ethereum", DEPOSIT) == 1
    execute("UPDATE app_clock SET ahead = ahead + interval '2 hours'")
    assert sweeps.fundings_lately("ethereum", DEPOSIT) == 0


# Books ------------------------------------------------------------------------------------------------------


def test_the_books_are_of_one_network_up_to_one_block(chain: Chain) -> None:
    bsc = Chain("bsc")
    pin_hot()
    later = (chain.height + 1, "0xlater")
    for network, block in (("bsc", (bsc.height, bsc._hash())), ("ethereum", later)):
        spend(network=network, purpose="cold", recipient=COLD, token_units=20, mined=block, chain_fee_units=2)
        spend(network=network, purpose="sweep", sender=DEPOSIT, recipient=HOT, token_units=50, mined=block)
    spend(network="bsc", recipient=DEPOSIT, token_units=1)
    here = (chain.height, chain._hash())
    spend(purpose="cold", recipient=COLD, token_units=9, mined=here, is_success=False)
    spend(purpose="sweep", sender=DEPOSIT, recipient=HOT, token_units=9, mined=here, is_success=False)
    # Into the block after the scan's, which is no reason for a comparison.
    execute(
        "INSERT INTO chain_blocks (network, height, hash, parent_height, parent_hash, block_time)"
        " VALUES ('ethereum', %s, '0xother', 0, '', app_now())",
        later[:1],
    )
    with transaction():
        assert topups.record(seen(chain, 5, txid="0xlater", block_height=chain.height + 1))
        assert topups.record(seen(chain, 5, txid="0xbsc", network="bsc"))
    books = reconciliation.read_books("ethereum")
    assert books is not None
    assert (books.topup_units, books.flows, books.open) == ({}, [], [])
    assert books.cooled == []


def test_a_settled_spend_counts_once_even_after_its_block_was_pruned(chain: Chain) -> None:
    pin_hot()
    made = spend(recipient=STRANGER, token_units=7, mined=(chain.height, "0xreplaced"), state="confirmed")
    execute("UPDATE spends SET settled_at = app_now() WHERE id = %s", (made,))
    books = reconciliation.read_books("ethereum")
    assert books is not None
    assert (books.flows, books.open) == ([Flow("ETH", 18, -7)], [])


def test_the_books_are_read_at_one_moment(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    pin_hot()
    honest = reconciliation._topups

    def meanwhile(*args: Any, **named: Any) -> dict[str, int]:
        block = (chain.height, chain._hash())
        at_once(1, lambda _: spend(recipient=DEPOSIT, token_units=1, mined=block))
        return honest(*args, **named)

    monkeypatch.setattr(reconciliation, "_topups", meanwhile)
    books = reconciliation.read_books("ethereum")
    assert books is not None
    assert books.flows == []


def test_a_reversed_top_up_is_not_in_the_books(chain: Chain) -> None:
    pin_hot()
    topup(chain, 5)
    execute("UPDATE treasury_topups SET status = 'reversed'")
    books = reconciliation.read_books("ethereum")
    assert books is not None
    assert books.topup_units == {}


def test_a_sweep_to_the_hot_wallet_counts_as_waiting() -> None:
    Chain()
    pin_hot()
    coming = spend(purpose="sweep", sender=DEPOSIT, recipient=HOT, token_units=1)
    books = reconciliation.read_books("ethereum")
    assert books is not None
    assert [each.id for each in books.open] == [coming]


def test_comparisons_are_separate_by_place_and_network() -> None:
    finding = Finding(
        currency="ETH", place="deposits", height=12, chain_units=1, expected_units=2, detail="less", address=DEPOSIT
    )
    reconciliation.note("ethereum", finding)
    assert reconciliation.last_height("ethereum") == -1
    assert not reconciliation.was_compared("ethereum", "ETH")
    reconciliation.note("bsc", dataclasses.replace(finding, place="hot", address=HOT))
    assert reconciliation.last_height("ethereum") == -1
    assert not reconciliation.was_compared("ethereum", "ETH")
    reconciliation.note("ethereum", dataclasses.replace(finding, place="hot", address=HOT))
    reconciliation.note("ethereum", dataclasses.replace(finding, place="cold", address=COLD))
    assert reconciliation.short_address("ethereum", "ETH") == DEPOSIT
    assert reconciliation.short_address("bsc", "ETH") == ""


def test_a_deficit_does_not_continue_the_count_of_a_surplus() -> None:
    # A contract sends coin with every block; then one answer of a node is wrong.
    more = Finding(currency="ETH", place="hot", height=10, chain_units=3, expected_units=2, detail="more")
    less = dataclasses.replace(more, chain_units=1, detail="less")
    findings = [more, more, more, more, less, less, more]
    counted = [
        reconciliation.note("ethereum", dataclasses.replace(finding, height=10 + number))
        for number, finding in enumerate(findings)
    ]
    assert counted == [1, 2, 3, 4, 1, 2, 1]


# Balances ---------------------------------------------------------------------------------------------------


def test_a_balance_is_explained_by_its_coin_and_network() -> None:
    address, _ = two_networks()

    def explained_units(height: int = 10**9, **which: bool) -> int:
        return probes.deposited_units("ethereum", address, "USDT", height=height, **which)

    assert explained_units() == 15 * USDT
    assert explained_units(only_confirmed=True) == 10 * USDT
    assert explained_units(1) == explained_units(1, only_confirmed=True) == 0
    execute("UPDATE deposits SET status = 'reversed'")
    assert explained_units() == explained_units(only_confirmed=True) == 0


def probed(chain: Chain, like: Deposit, units: int) -> Deposit:
    """Return a deposit in a chain's newest block that only the balance shows."""
    return like.but(
        txid="",
        ordinal=probes.ordinal(like.network, like.address, chain.height),
        amount_units=units,
        block_height=chain.height,
        block_hash=chain._hash(),
    )


def test_a_counted_balance_covers_its_address_and_coin_up_to_its_block(chain: Chain) -> None:
    mine, other = invoice(pay_currency="ETH"), invoice(pay_currency="ETH")
    chain.mine()
    deposit = chain.transfer(mine, 7, currency="ETH").but(ordinal="native", block_height=chain.height)
    with transaction():
        assert deposits.record(probed(chain, deposit, 7))
    for strange in (
        deposit.but(block_height=chain.height + 1),
        deposit.but(address=other.address.lower()),
        deposit.but(currency="USDT"),
        deposit.but(network="bsc"),
    ):
        assert not probes.covers(strange, is_witnessed=False), strange
    # A transfer of a part of it is covered too, and names no transaction.
    assert probes.covers(deposit.but(amount_units=2), is_witnessed=False)
    assert not probes.covers(deposit, is_witnessed=True)
    assert rows("SELECT txid FROM deposits") == [("",)]


@pytest.mark.parametrize(("status", "rounds"), [("pending", 1), ("confirmed", 0)])
def test_a_transfer_found_late_gives_a_deposit_its_name_and_block(chain: Chain, status: str, rounds: int) -> None:
    """A booked one keeps its life; the other is judged again."""
    mine = invoice(pay_currency="ETH")
    chain.mine()
    deposit = chain.transfer(mine, 7, currency="ETH").but(ordinal="native", block_height=1, block_hash="0x01")
    with transaction():
        assert deposits.record(probed(chain, deposit, 7))
        execute("UPDATE deposits SET status = %s", (status,))
        assert probes.covers(deposit, is_witnessed=False) is (status == "confirmed")
        assert deposits.record(deposit) is (status == "pending")
    assert rows("SELECT txid, ordinal, block_height, block_hash, round, status FROM deposits") == [
        (deposit.txid, "native", 1, "0x01", rounds, status)
    ]


def test_a_deposit_that_waits_for_witnesses_covers_nothing(chain: Chain) -> None:
    deposit = chain.transfer(invoice(pay_currency="ETH"), 7, currency="ETH").but(
        ordinal="native", block_height=chain.height
    )
    with transaction():
        assert deposits.record(probed(chain, deposit, 7))
    execute(
        "INSERT INTO deposit_quorums (deposit_id, round, network, reason) SELECT id, 0, network, 'hidden' FROM deposits"
    )
    assert not probes.covers(deposit, is_witnessed=False)
    assert rows("SELECT txid FROM deposits") == [("",)]


def test_a_counted_balance_that_a_reorg_took_covers_nothing(chain: Chain) -> None:
    deposit = chain.transfer(invoice(pay_currency="ETH"), 7, currency="ETH").but(
        ordinal="native", block_height=chain.height
    )
    with transaction():
        assert deposits.record(probed(chain, deposit, 7))
    execute("UPDATE deposits SET status = 'reversed'")
    assert not probes.covers(deposit, is_witnessed=False)
