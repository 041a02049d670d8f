"""Coins are rows with one holder each, and are free again when their spend is dead."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from psycopg2.extras import Json

from models.db.base import execute, rows, transaction
from models.spends import coins, held_coins, tracking, unexplained
from models.spends import rows as spends
from models.spends.coins import FreeCoin, Spending
from models.spends.unexplained import Part
from models.treasury import sweeps
from tests.models.builders import CATALOGUE, begin_scan
from tests.models.db.collisions import at_once
from tests.models.invariants.coin_story import coin
from tests.models.spends.departures import a_departure
from tests.models.treasury.builders import spend


@pytest.fixture(autouse=True)
def _scanned(database: str) -> None:
    """Scan up to block 10, with two coins of block 7 and one of block 10."""
    del database
    begin_scan("ethereum", height=10)
    begin_scan("bsc", height=10)
    with transaction():
        made = [coin("0xa", height=7), coin("0xa", height=7, vout=1), coin("0xb", height=10)]
        assert coins.note("ethereum", made, [], height=10, block_hash="0x10") == 3


def hold(spend_id: UUID, *outpoints: tuple[str, int]) -> bool:
    with transaction():
        return held_coins.hold(spend_id, outpoints)


def free() -> list[tuple[str, int]]:
    pairs = [(each.txid, each.vout) for each in coins.free("ethereum", "evm", "ETH", limit=9)]
    assert coins.free_outpoints("ethereum", "ETH", limit=9) == pairs
    return pairs


def a_spend(**columns: object) -> UUID:
    return spend(recipient="0xd", token_units=1, **columns)  # type: ignore[arg-type]


def test_free_coins_have_their_depth_and_key() -> None:
    execute("INSERT INTO pool_addresses (family, ordinal, address) VALUES ('evm', 5, '0xours')")
    execute("UPDATE coins SET address = '0xours' WHERE vout = 1")
    execute("UPDATE coins SET depth_min = 2 WHERE txid = '0xb'")

    assert coins.free("ethereum", "evm", "ETH", limit=9) == [
        FreeCoin("0xa", 0, 5, "0xhot", None, 4),
        FreeCoin("0xa", 1, 5, "0xours", 5, 4),
    ]
    assert len(coins.free("ethereum", "evm", "ETH", limit=1)) == 1
    assert coins.free("ethereum", "evm", "USDT", limit=9) == []
    assert coins.free("bsc", "evm", "ETH", limit=9) == []
    execute("UPDATE coins SET depth_min = 1 WHERE txid = '0xb'")
    assert free() == [("0xa", 0), ("0xa", 1), ("0xb", 0)]


def test_the_most_valuable_free_coins_are_returned_first() -> None:
    """Many small coins from a stranger must not keep payouts from using the large ones that came later."""
    execute("UPDATE coins SET units = 9 WHERE txid = '0xb'")

    assert [each.txid for each in coins.free("ethereum", "evm", "ETH", limit=2)] == ["0xb", "0xa"]


def test_a_coin_has_one_holder() -> None:
    first, second = a_spend(), a_spend()
    assert hold(first, ("0xa", 0), ("0xb", 0))
    assert not hold(second, ("0xa", 1), ("0xb", 0))
    assert free() == [("0xa", 1)]
    assert [(each.txid, each.vout) for each in held_coins.of_spend(first, "bitcoin")] == [("0xa", 0), ("0xb", 0)]
    assert held_coins.of_spend(second, "bitcoin") == []


@pytest.mark.parametrize("wanted", [[], [("0xnone", 0)], [("0xa", 0), ("0xa", 2)]])
def test_a_missing_coin_is_not_held(wanted: list[tuple[str, int]]) -> None:
    assert not hold(a_spend(), *wanted)
    assert len(free()) == 3


def test_a_coin_of_another_network_or_without_a_spend_is_not_held() -> None:
    assert not hold(a_spend(network="bsc"), ("0xa", 0))
    assert not hold(uuid4(), ("0xa", 0))


def test_a_spent_or_vanished_coin_is_not_held() -> None:
    with transaction():
        coins.note("ethereum", [], [Spending("0xa", 0, "0xthief")], height=10, block_hash="0x10")
    execute("UPDATE coins SET created_height = NULL, created_hash = NULL WHERE txid = '0xb'")

    assert free() == [("0xa", 1)]
    assert not hold(a_spend(), ("0xa", 0))
    assert not hold(a_spend(), ("0xb", 0))


def test_one_of_several_concurrent_spends_gets_a_coin() -> None:
    wanting = [a_spend() for _ in range(4)]
    outpoints = [("0xa", 0), ("0xa", 1), ("0xb", 0)]

    def take(number: int) -> bool:
        return hold(wanting[number], *(outpoints if number % 2 else reversed(outpoints)))

    assert sorted(at_once(4, take)) == [False, False, False, True]  # type: ignore[type-var]
    assert rows("SELECT count(DISTINCT held_by), count(held_by) FROM coins") == [(1, 3)]


def test_a_rolled_back_spend_holds_no_coin() -> None:
    spend_id = a_spend()

    def fail() -> None:
        with transaction():
            assert held_coins.hold(spend_id, [("0xa", 0)])
            _ = 1 // 0

    with pytest.raises(ZeroDivisionError):
        fail()
    assert ("0xa", 0) in free()


def test_a_dead_spends_coins_are_free_again() -> None:
    # The import registers the purpose of its spends.
    assert sweeps
    spend_id = a_spend(slot=7)
    other = a_spend()
    assert hold(spend_id, ("0xa", 0))
    assert hold(other, ("0xa", 1))
    execute(
        "INSERT INTO unexplained_departures (id, network, txid, claim, sender, slot, currency, decimals, raw, outputs,"
        " is_transfer, is_success, block_height, block_hash) SELECT gen_random_uuid(), network, '0xstranger',"
        " 'counter', sender, slot, currency, decimals, 'x', %s, true, true, 10, '0x10' FROM spends WHERE id = %s",
        (Json([Part("0xs", 1).to_json()]), spend_id),
    )
    with transaction():
        assert tracking.bury(CATALOGUE, spend_id, attempts=1) is not None

    assert free() == [("0xa", 0), ("0xb", 0)]
    with transaction():
        assert held_coins.release(other) == 1
    assert len(free()) == 3


def test_noting_twice_changes_nothing() -> None:
    with transaction():
        assert coins.note("ethereum", [coin("0xa", height=9)], [], height=9, block_hash="0x9") == 0
        spent = [Spending("0xa", 0, "0xone"), Spending("0xnone", 0, "0xone")]
        assert coins.note("ethereum", [], spent, height=10, block_hash="0x10") == 1
        again = [Spending("0xa", 0, "0xtwo")]
        assert coins.note("ethereum", [], again, height=10, block_hash="0x10") == 0
    assert rows("SELECT created_height, spent_by_txid FROM coins WHERE txid = '0xa' AND vout = 0") == [(7, "0xone")]


def test_our_coins_are_recognised_spent_or_not() -> None:
    with transaction():
        coins.note("ethereum", [], [Spending("0xa", 0, "0xone")], height=10, block_hash="0x10")
    assert coins.ours("ethereum", [("0xa", 0), ("0xb", 0), ("0xb", 1)]) == {("0xa", 0), ("0xb", 0)}
    assert coins.ours("bsc", [("0xa", 0)]) == set()
    assert coins.ours("ethereum", []) == set()


def test_a_spend_whose_coin_was_taken_is_buried_once_its_taker_is_known() -> None:
    # The import registers the purpose of its spends.
    assert sweeps
    spend_id = a_spend(slot=None)
    assert hold(spend_id, ("0xa", 0))
    with transaction():
        coins.note("ethereum", [], [Spending("0xa", 0, "0xstranger")], height=10, block_hash="0x10")
    with transaction():
        assert tracking.bury(CATALOGUE, spend_id, attempts=1) is None, "the taker may have paid the same"

    row = spends.find(spend_id)
    assert row is not None
    same = a_departure(
        "0xstranger", sender="", slot=None, recipient="0xd", token_units=1, contract=row.contract, spends=[["0xa", 0]]
    )
    with transaction():
        assert unexplained.note(same)
        assert tracking.bury(CATALOGUE, spend_id, attempts=1) is None, "the taker paid the same"
    execute("UPDATE unexplained_departures SET outputs = jsonb_set(outputs, '{0,units}', '2')")
    with transaction():
        assert tracking.bury(CATALOGUE, spend_id, attempts=1) is not None


def test_a_coin_taken_by_another_of_our_spends_is_lost_at_once() -> None:
    # The import registers the purpose of its spends.
    assert sweeps
    spend_id = a_spend(slot=None)
    assert hold(spend_id, ("0xa", 0))
    a_spend(slot=None, txid="0xours")
    with transaction():
        coins.note("ethereum", [], [Spending("0xa", 0, "0xours")], height=10, block_hash="0x10")
        assert tracking.bury(CATALOGUE, spend_id, attempts=1) is not None


def test_a_lost_coin_that_only_a_later_attempt_claims_is_no_longer_needed() -> None:
    spend_id, other = a_spend(slot=None), a_spend(slot=None, txid="0xstranger")
    assert hold(spend_id, ("0xa", 0))
    with transaction():
        assert held_coins.hold(spend_id, [("0xa", 1)], number=1)
    both = [("0xa", 0), ("0xa", 1)]
    assert held_coins.needing("ethereum", both[1:], depth=1) == [spend_id], "the coin is still unspent"
    with transaction():
        coins.note("ethereum", [], [Spending("0xa", 1, "0xstranger")], height=9, block_hash="0x9")

    assert held_coins.needing("ethereum", both[1:], depth=3) == [spend_id], "not deep enough"
    assert held_coins.needing("ethereum", both[1:], depth=2) == []
    assert held_coins.needing("ethereum", both, depth=2) == [spend_id], "the other coin is in all attempts"
    with transaction():
        assert held_coins.take_over(spend_id, "ethereum", both) == 0, "the spend holds them"
        assert held_coins.take_over(other, "ethereum", both, number=4) == 1
    assert rows("SELECT vout, held_by, held_number FROM coins WHERE txid = '0xa' ORDER BY vout") == [
        (0, spend_id, 0),
        (1, other, 4),
    ]
