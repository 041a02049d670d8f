"""What comes to the hot wallet counts once enough providers tell of it: an invented top-up is never sold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.scan import rescan
from actors.treasury import reconcile
from cli.embedded.evm.anvil import Anvil
from models.db.base import rows
from models.ledger.ledger import CUSTODY, EQUITY, GATEWAY, Account
from models.payouts import freezes
from tests.actors.scan.test_witnesses import again, invent
from tests.actors.scan.world import ETHER, USDT_UNITS, World
from tests.actors.treasury.world import TreasuryWorld
from tests.models.ledger.figures import net_of
from tests.models.treasury.builders import topup_rows
from tests.peers.lying_rpc import DOWN

EQUITY_USDT = Account(GATEWAY, EQUITY, "USDT")
TEN_THOUSAND = 10_000 * 10**6


def mature(world: World) -> None:
    world.advance(world.network.maturity + rescan.BEHIND)
    world.rescan()
    world.poll()


def usdt() -> list[tuple[Any, ...]]:
    return rows("SELECT status, doubted_for FROM treasury_topups WHERE currency = 'USDT' ORDER BY id")


def test_an_invented_top_up_is_neither_booked_nor_sold_nor_freezes_anything(trio: TreasuryWorld) -> None:
    """10,000 USDT that one provider tells of were the gateway's own at maturity, and conversions sold them."""
    invent(trio, trio.hot, TEN_THOUSAND)
    trio.catch_up()
    mature(trio)
    assert usdt() == [("pending", "amount")]

    trio.witness()
    for _ in range(4):
        trio.advance()
        reconcile.reconcile("ethereum")
    again(trio)
    trio.poll(2)

    assert (usdt(), net_of(EQUITY_USDT)) == ([("pending", "amount")], 0)
    assert freezes.listing() == []


def test_a_top_up_that_two_tell_of_is_booked(trio: TreasuryWorld) -> None:
    trio.send(trio.hot, TEN_THOUSAND)
    trio.advance()
    trio.providers[1].failure = DOWN
    mature(trio)
    assert net_of(EQUITY_USDT) == 0
    # While it is doubted it may be there or not.
    reconcile.reconcile("ethereum")
    assert trio.findings() == []

    trio.witness()
    trio.poll()

    assert usdt() == [("booked", "amount")]
    assert net_of(EQUITY_USDT) == 10_000 * 10**18
    trio.providers[1].failure = None


def test_small_top_ups_share_the_hour_of_the_deposits(database: str, anvil: Callable[..., Anvil]) -> None:
    world = TreasuryWorld(database, anvil, QUORUM_USD="1000", QUORUM_HOURLY_USD="25")
    with world.served_by(2):
        world.keep()
        for _ in range(3):
            world.send(world.hot, USDT_UNITS)
            world.mine()
        world.catch_up()
        assert [doubted for _, doubted in usdt()] == [None, None, "hourly"]
        mature(world)
        assert net_of(EQUITY_USDT) == 20 * 10**18


def test_what_a_second_reading_lacks_is_doubted_and_none_is_booked_before_it(trio: TreasuryWorld) -> None:
    """Too small for the policy: nobody but the second reading notices."""
    invent(trio, trio.hot, USDT_UNITS)
    trio.catch_up()
    trio.advance(trio.network.maturity + rescan.BEHIND)
    assert usdt() == [("pending", None)]

    trio.rescan()
    trio.witness()
    trio.poll()

    assert (usdt(), net_of(EQUITY_USDT)) == ([("pending", "missing")], 0)


def test_a_top_up_that_comes_again_after_a_reorg_is_witnessed_anew(trio: TreasuryWorld) -> None:
    txid, raw = trio.signed(trio.hot, TEN_THOUSAND)
    trio.node.ask("eth_sendRawTransaction", raw)
    trio.advance()
    trio.witness()
    trio.reorg(1)
    trio.advance()
    assert rows("SELECT status FROM treasury_topups WHERE currency = 'USDT'") == [("reversed",)]
    trio.node.ask("eth_sendRawTransaction", raw)
    trio.advance()

    assert rows("SELECT txid, round, agreed_at FROM treasury_topups WHERE currency = 'USDT'") == [(txid, 2, None)]
    mature(trio)
    assert net_of(EQUITY_USDT) == 0
    trio.witness()
    trio.poll()
    assert net_of(EQUITY_USDT) == 10_000 * 10**18


def test_coin_that_one_balance_shows_is_not_adopted(database: str, anvil: Callable[..., Anvil]) -> None:
    """With one of two away, the other's word is a balance, but no top-up."""
    world = TreasuryWorld(database, anvil)
    with world.served_by(2):
        world.keep()
        true = world.coin(world.hot)
        world.providers[0].failure = DOWN
        world.providers[1].lies["eth_getBalance"] = hex(true + 3 * ETHER)
        world.advance()
        world.reconcile(5)
        assert topup_rows() == []
        assert net_of(Account(GATEWAY, CUSTODY, "ETH", "ethereum")) == 0


def test_coin_that_no_transfer_brought_is_adopted_once_two_tell_of_it(
    database: str, anvil: Callable[..., Anvil]
) -> None:
    """Nobody lies here: the word of one is too little all the same, and waits for the other's."""
    world = TreasuryWorld(database, anvil)
    with world.served_by(2):
        world.keep()
        world.node.ask("anvil_setBalance", world.hot, hex(3 * ETHER))
        world.advance()
        world.providers[0].failure = DOWN
        world.reconcile(5)
        assert topup_rows() == []
        world.providers[0].failure = None
        world.advance()
        world.reconcile(5)
        assert topup_rows("currency", "units", "origin") == [("ETH", 3 * ETHER, "balance")]


def test_a_reader_may_see_why_a_top_up_waits(trio: TreasuryWorld) -> None:
    invent(trio, trio.hot, TEN_THOUSAND)
    trio.catch_up()
    trio.witness()
    ((problem, attempts),) = rows("SELECT problem, attempts FROM treasury_topups WHERE currency = 'USDT'")
    assert (problem, attempts) == ("1 of 3 providers agree, 2 tell otherwise", 1)
