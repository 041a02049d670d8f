"""Duties after a database lost its last commits: its payments are found again, and each is paid once."""

from __future__ import annotations

import time
from typing import cast

import pytest

from actors import context
from actors.recovery import resume
from actors.signer import broadcast, held_keys, spenders
from chains.family import DEPOSITS
from chains.spending import Fate, FateKind, KeyRef
from models.db.base import execute, rows, transaction
from models.deposits import cursors
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.recovery import writeoffs
from models.recovery.writeoffs import RecoveryError
from models.spends import signing_stops, tracking
from tests.chains.contract.rig import PRICE, Rig, dies_at, status, stored
from tests.chains.contract.ton import TonRig

pytestmark = pytest.mark.fresh_database

# Longer than anything lives that was signed.
LIFE_S = 700
# Of an address that no row has given away.
ORDINAL = 900_000_007


def sign(rig: Rig, times: int = 2) -> None:
    for _ in range(times):
        execute("UPDATE payouts SET due_at = app_now() WHERE status = 'approved'")
        rig.sign()


def whole(rig: Rig) -> int:
    return int(10 ** rig.catalogue.scale(rig.currency))


def pay_order(rig: Rig, of: PayoutRow, txid: str, place: int | None = None) -> tuple[PayoutRow, int]:
    catalogue = rig.catalogue
    return writeoffs.pay_order(
        catalogue, rig.code, txid, merchant_id=of.merchant_id, order_id=of.order_id, by="operator", place=place
    )


def test_payouts_with_lost_rows_find_their_orders_and_are_paid_once(rich: Rig) -> None:
    people = [rich.recipient() for _ in range(3)]
    # One of them is owed the same twice: each order has a transfer of its own.
    orders = [rich.order(to) for to in (people[0], *people[:2])]
    backup = rich.copy()
    sign(rich)
    paid = rows("SELECT a.txid, a.raw FROM spend_attempts a ORDER BY 1")
    rich.follow()
    assert [rich.units_at(to) for to in people] == [2 * rich.price, rich.price, 0]

    rich.go_back_to(backup)
    assert rows("SELECT count(*) FROM spends") == [(0,)]
    later = rich.order(people[2])
    sign(rich, 3)
    assert rows("SELECT count(*) FROM spends") == [(0,)], "nothing is signed before the scan has caught up"
    rich.catch_up()
    rich.outlast()
    sign(rich)
    rich.follow()

    assert signing_stops.read(rich.code) is None
    assert [status(order) for order in (*orders, later)] == ["confirmed"] * 4
    assert [rich.units_at(to) for to in people] == [2 * rich.price, rich.price, rich.price]
    assert {(txid, bytes(raw)) for txid, raw in paid} <= {
        (txid, bytes(raw)) for txid, raw in rows("SELECT txid, raw FROM spend_attempts")
    }
    assert rich.findings() == []


# Where the signer may be killed while it pays, one order for each; None for an order that it pays in peace.
KILLED_AT = ("spending.signed", "spending.committed", "spending.given", "watch.told", None)


@pytest.mark.rigs("ethereum", "tron", "bitcoind")
def test_a_machine_restored_as_a_whole_pays_no_recipient_twice(rich: Rig) -> None:
    """Database and Redis are of one image: nothing but the chain knows what was signed since."""
    people = [rich.recipient() for _ in KILLED_AT]
    orders = [rich.order(to) for to in people]
    execute("UPDATE payouts SET due_at = 'infinity'")
    backup = rich.copy()
    for order, label in zip(orders, KILLED_AT, strict=True):
        execute("UPDATE payouts SET due_at = app_now() WHERE id = %s", (order.id,))
        if label is None:
            rich.sign()
        else:
            assert dies_at(label, rich.sign), label
        rich.restart()
        rich.advance()
    sign(rich)
    # Of the last block before the machine is lost some have their transactions, and some wait.
    rich.advance()
    paid = [rich.units_at(to) for to in people]
    assert set(paid) <= {0, rich.price}
    assert sum(paid) > 0

    rich.go_back_unnoticed(backup)
    assert signing_stops.doubtful() == {rich.code}, "no other door is open before the scan's first look"
    later = rich.recipient()
    orders.append(rich.order(later))
    sign(rich, 3)
    assert rows("SELECT count(*) FROM spends") == [(0,)], "the scan has not read what was lost"
    rich.poll()
    assert signing_stops.read(rich.code) is not None
    rich.catch_up()
    sign(rich)
    rich.outlast()
    for _ in range(3):
        sign(rich)
        rich.follow()

    assert signing_stops.read(rich.code) is None
    assert [status(order) for order in orders] == ["confirmed"] * len(orders)
    assert [rich.units_at(to) for to in (*people, later)] == [rich.price] * len(orders)
    assert rich.findings() == []


@pytest.mark.rigs("toycounter", "toycoins")
def test_a_stop_lasts_while_the_nodes_have_gone_back_with_the_machine(rich: Rig) -> None:
    rich.go_back_unnoticed(rich.copy())
    execute("UPDATE chain_cursors SET block_time = block_time - interval '1 day'")
    rich.poll(2)
    sign(rich)
    assert rows("SELECT is_caught_up FROM signing_stops") == [(False,)], "the chain has no block of today"
    execute("UPDATE chain_cursors SET block_time = clock_timestamp() - interval '100 seconds'")
    rich.poll()
    is_counted = rich.claim == "counter"
    assert rows("SELECT is_caught_up FROM signing_stops") == [(is_counted,)], "the block may be of before the stop"
    rich.outlast()
    sign(rich)
    assert signing_stops.read(rich.code) is None


@pytest.mark.rigs("bitcoind")
def test_blocks_follow_the_clock_after_it_was_moved(rich: Rig) -> None:
    """A stop ends at a block younger than itself; a node whose clock does not run never makes one."""
    # Beyond the blocks that were made at once, each a little later than the one before.
    rich.pass_time(1_000)
    rich.advance()
    before = rows("SELECT block_time FROM chain_cursors")
    time.sleep(1.1)
    rich.advance()
    assert rows("SELECT block_time FROM chain_cursors") > before


@pytest.mark.rigs("tron")
def test_a_signer_that_begins_signs_once_the_scan_has_looked_and_stops_while_it_is_halted(rich: Rig) -> None:
    order = rich.order(rich.recipient())
    rich.restart()
    sign(rich)
    assert (rows("SELECT count(*) FROM spends"), status(order)) == ([(0,)], "approved")
    rich.advance()
    cursors.halt(rich.code, "a test")
    sign(rich)
    assert rows("SELECT count(*), (SELECT min(wait_reason) FROM payouts) FROM spends") == [
        (0, "signing is stopped: the scan is halted: a test")
    ]
    cursors.resume(rich.code)
    sign(rich)
    rich.follow()
    assert status(order) == "confirmed"
    assert rows("SELECT wait_reason FROM payouts") == [("",)]


@pytest.mark.claims("window")
def test_a_scanned_transaction_is_not_signed_again_if_all_nodes_forget_it(
    rich: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that began from a snapshot has none of the outcomes before."""
    to = rich.recipient()
    order = rich.order(to)
    sign(rich, 1)
    rich.advance()
    spender = spenders.spender_of(context.context(), rich.network)
    with monkeypatch.context() as lite:
        lite.setattr(type(spender), "fate", lambda *_: Fate(kind=FateKind.DEAD, cause="expired"))
        rich.outlast()
        sign(rich, 3)
        assert rows("SELECT count(*) FROM spends") == [(1,)]
        assert signing_stops.read(rich.code).reason == tracking.CONTRADICTED  # type: ignore[union-attr]
    rich.outlast()
    sign(rich)
    rich.follow()
    assert (status(order), rich.units_at(to), signing_stops.read(rich.code)) == ("confirmed", rich.price, None)


@pytest.mark.needs("gather")
def test_a_sweep_with_lost_rows_is_found_again_and_is_no_payment(rich: Rig) -> None:
    """A sweep is no top-up, and gas for it no deposit, whatever their transfers are called."""
    mine = rich.invoice()
    rich.pay(stored(mine), rich.price)
    rich.advance(rich.network.maturity)
    backup = rich.copy()
    rich.gather()
    queries = (
        "SELECT purpose, token_units FROM spends ORDER BY 1, 2",
        "SELECT txid, mark FROM spend_attempts ORDER BY 1",
        "SELECT count(*) FROM treasury_topups",
    )
    before = [rows(query) for query in queries]
    assert "sweep" in dict(before[0])

    rich.go_back_to(backup)
    rich.catch_up()
    rich.pass_time(LIFE_S)
    rich.outlast()
    sign(rich)
    rich.follow()
    assert signing_stops.read(rich.code) is None
    assert [rows(query) for query in queries] == before
    assert rows("SELECT sweep_id IS NOT NULL FROM deposits") == [(True,)]
    assert rich.findings() == []


@pytest.mark.rigs("ton")
def test_coin_from_an_address_whose_owner_is_lost_is_booked_once(rich: Rig) -> None:
    """Its sweep is known by the request alone: the arrival at the hot wallet, which has another id, is no top-up."""
    before = rows("SELECT count(*) FROM treasury_topups")
    address = held_keys.keys().deriver(rich.network).address(DEPOSITS, ORDINAL)
    execute("INSERT INTO pool_addresses (family, ordinal, address) VALUES ('ton', %s, %s)", (ORDINAL, address))
    cast("TonRig", rich).sweep(KeyRef(address=address, ordinal=ORDINAL))
    rich.advance(rich.network.maturity)
    assert signing_stops.read(rich.code) is not None
    rich.outlast()
    sign(rich)
    rich.follow()
    assert signing_stops.read(rich.code) is None
    assert rows("SELECT purpose, sender FROM spends") == [("sweep", address)]
    assert rows("SELECT count(*) FROM treasury_topups") == before
    assert rich.findings() == []


def test_an_unclaimed_departure_waits_for_an_operator(rich: Rig) -> None:
    people = [rich.recipient() for _ in range(2)]
    kept = rich.order(people[0])
    backup = rich.copy()
    lost = rich.order(people[1])
    sign(rich)
    rich.follow()
    places = dict(rows("SELECT o.recipient, (SELECT a.txid FROM spend_attempts a WHERE a.spend_id = o.spend_id)"
                       " FROM spend_outputs o"))  # fmt: skip

    rich.go_back_to(backup)
    rich.catch_up()
    sign(rich, 3)
    assert signing_stops.read(rich.code) is not None
    is_together = len(set(places.values())) == 1
    assert status(kept) == ("approved" if is_together else "confirmed")

    with pytest.raises(RecoveryError, match="not among"):
        pay_order(rich, lost, "elsewhere")
    booked, left = pay_order(rich, lost, places[people[1]])
    assert (booked.address, left) == (people[1], 0)
    rich.outlast()
    sign(rich)
    rich.follow()
    assert signing_stops.read(rich.code) is None
    assert rows("SELECT status, count(*) FROM payouts GROUP BY 1") == [("confirmed", 2)]
    assert [rich.units_at(to) for to in people] == [rich.price] * 2
    assert rich.findings() == []


def test_a_write_off_leaves_the_books_and_other_orders_are_paid(rich: Rig) -> None:
    people = [rich.recipient() for _ in range(2)]
    kept = rich.order(people[0])
    backup = rich.copy()
    rich.order(people[1])
    sign(rich)
    rich.follow()

    rich.go_back_to(backup)
    rich.catch_up()
    sign(rich, 3)
    rich.book_loss(rich.price)
    rich.outlast()
    sign(rich)
    rich.follow()
    assert signing_stops.read(rich.code) is None
    unsettled = rows("SELECT txid FROM unexplained_departures WHERE status = 'unexplained'")
    assert (status(kept), unsettled) == ("confirmed", [])
    assert rich.findings() == []


@pytest.mark.parametrize("back", ["go_back_to", "go_back_unnoticed"])
@pytest.mark.claims("window")
def test_signing_waits_until_no_lost_transaction_can_be_included(rich: Rig, back: str) -> None:
    """Nothing that both claim keeps one of two windows out: the scan has caught up, and knows nothing of what waits."""
    to = rich.recipient()
    order = rich.order(to)
    backup = rich.copy()
    sign(rich)
    ((txid, raw),) = rows("SELECT txid, raw FROM spend_attempts")
    rich.forget_waiting()

    getattr(rich, back)(backup)
    rich.advance(3)
    sign(rich, 3)
    assert (rows("SELECT count(*) FROM spends"), status(order)) == ([(0,)], "approved")
    rich.include(bytes(raw))
    rich.catch_up()
    rich.outlast()
    sign(rich)
    rich.follow()

    assert signing_stops.read(rich.code) is None
    assert (rich.units_at(to), status(order)) == (rich.price, "confirmed")
    assert rows("SELECT txid FROM spend_attempts") == [(txid,)]
    assert rich.findings() == []


@pytest.mark.parametrize("back", ["go_back_to", "go_back_unnoticed"])
@pytest.mark.claims("coins")
def test_signing_waits_for_lost_transactions_in_the_pools(rich: Rig, back: str) -> None:
    """Coins have no counter: the scan has caught up, but a new signature would take other coins."""
    to = rich.recipient()
    order = rich.order(to)
    backup = rich.copy()
    sign(rich)
    ((txid,),) = rows("SELECT txid FROM spend_attempts")

    getattr(rich, back)(backup)
    rich.catch_up()
    sign(rich, 3)
    assert (rows("SELECT count(*) FROM spends"), status(order)) == ([(0,)], "approved")
    rich.pass_time(resume.CAUTIOUS_S + 1)
    sign(rich)
    assert signing_stops.read(rich.code) is not None, "it waits, however long that is"
    rich.mine()
    sign(rich)
    assert signing_stops.read(rich.code) is not None, "no pool has it any more, and the scan has not seen its block"
    rich.follow(4)

    assert signing_stops.read(rich.code) is None
    assert (rich.units_at(to), status(order)) == (rich.price, "confirmed")
    assert rows("SELECT txid FROM spend_attempts") == [(txid,)]
    assert rich.findings() == []


@pytest.mark.rigs("bitcoind")
def test_payouts_of_coins_from_the_lost_time_are_found_too(rich: Rig) -> None:
    """The restored pool has the address at which they came, and does not know that anybody was shown it."""
    to, dollars = rich.recipient(), 47
    sum_of = {"amount_units": dollars * whole(rich), "to_units": dollars * whole(rich)}
    order = rich.order(to, status="pending", **sum_of)
    backup = rich.copy()
    lost = rich.invoice()
    # Worth more than any coin of the hot wallet: it alone pays the order.
    came = rich.price * (dollars + 2) // PRICE
    rich.pay(stored(lost), came)
    rich.advance(rich.network.maturity)
    pooled = rows("SELECT family, ordinal, address FROM pool_addresses")
    with transaction():
        payouts.move(rich.catalogue, order, "approved")
    sign(rich)
    rich.follow()
    assert rows("SELECT address FROM coins WHERE spent_by_txid IS NOT NULL") == [(stored(lost),)]
    paid = rich.units_at(to)

    rich.go_back_to(backup)
    for row in pooled:
        execute("INSERT INTO pool_addresses (family, ordinal, address) VALUES (%s, %s, %s)", row)
    with transaction():
        payouts.move(rich.catalogue, order, "approved")
    rich.catch_up()
    rich.outlast()
    sign(rich)
    rich.follow()
    assert signing_stops.read(rich.code) is None
    assert (rich.units_at(to), status(order)) == (paid, "confirmed")
    assert rows("SELECT units FROM treasury_topups WHERE status = 'booked' ORDER BY units DESC LIMIT 1") == [(came,)]
    assert rich.findings() == []


# Of a window no two transactions share a claim.
@pytest.mark.claims("counter", "coins")
def test_another_transaction_that_pays_the_same_with_the_same_claim_is_the_same_spend(rich: Rig) -> None:
    to = rich.recipient()
    order = rich.order(to)
    sign(rich, 1)
    assert rich.usurp(to, rich.price)
    rich.catch_up()
    rich.outlast()
    for _ in range(3):
        rich.advance(rich.network.maturity)
        sign(rich)
        broadcast.broadcast(rich.code)

    assert signing_stops.read(rich.code) is None
    assert (rich.units_at(to), status(order)) == (rich.price, "confirmed")
    assert rows("SELECT state, attempts FROM spends") == [("confirmed", 2)]
    assert rich.findings() == []


@pytest.mark.rigs("solana")
def test_same_amount_other_memo_after_restore(rich: Rig) -> None:
    """Two payouts of one sum to one exchange: the lost transaction is the younger one's, by its memo alone."""
    exchange = rich.recipient()
    older, younger = (rich.order(exchange, memo=memo) for memo in ("1", "2"))
    backup = rich.copy()
    execute("UPDATE payouts SET due_at = 'infinity' WHERE id = %s", (older.id,))
    rich.sign()
    rich.follow()
    assert (rich.units_at(exchange), status(younger)) == (rich.price, "confirmed")
    ((lost,),) = rows("SELECT txid FROM spend_attempts")

    rich.go_back_to(backup)
    sign(rich)
    rich.catch_up()
    rich.outlast()
    sign(rich)
    rich.follow()

    assert [status(order) for order in (older, younger)] == ["confirmed"] * 2
    assert rich.units_at(exchange) == 2 * rich.price
    paid = rows("SELECT o.memo, a.txid = %s FROM spend_outputs o JOIN spend_attempts a USING (spend_id)", (lost,))
    assert sorted(paid) == [("1", False), ("2", True)]
    assert rich.findings() == []
