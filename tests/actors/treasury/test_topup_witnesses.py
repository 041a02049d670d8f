"""Top-ups of the hot wallet count once enough providers show them: an invented one is never sold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.scan import rescan
from actors.treasury import reconcile
from devstack.evm.anvil import Anvil
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


def test_an_invented_top_up_is_neither_booked_nor_sold_and_freezes_nothing(trio: TreasuryWorld) -> None:
    """Before, 10,000 USDT of one provider became the gateway's own at maturity, and conversions sold them."""
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


def test_a_top_up_that_two_providers_show_is_booked(trio: TreasuryWorld) -> None:
    trio.send(trio.hot, TEN_THOUSAND)
    trio.advance()
    trio.providers[1].failure = DOWN
    mature(trio)
    assert net_of(EQUITY_USDT) == 0
    # While it is doubted, it may or may not be there.
    reconcile.reconcile("ethereum")
    assert trio.findings() == []

    trio.witness()
    trio.poll()

    assert usdt() == [("booked", "amount")]
    assert net_of(EQUITY_USDT) == 10_000 * 10**18
    trio.providers[1].failure = None


def test_small_top_ups_share_the_hourly_budget_of_deposits(database: str, anvil: Callable[..., Anvil]) -> None:
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


def test_a_top_up_missing_at_the_second_reading_is_doubted_and_booked_only_after_it(trio: TreasuryWorld) -> None:
    """It is too small for the policy: only the second reading notices."""
    invent(trio, trio.hot, USDT_UNITS)
    trio.catch_up()
    trio.advance(trio.network.maturity + rescan.BEHIND)
    assert usdt() == [("pending", None)]

    trio.rescan()
    trio.witness()
    trio.poll()

    assert (usdt(), net_of(EQUITY_USDT)) == ([("pending", "missing")], 0)


def test_a_top_up_returning_after_a_reorg_is_witnessed_again(trio: TreasuryWorld) -> None:
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


def test_coin_shown_by_one_providers_balance_is_not_adopted(database: str, anvil: Callable[..., Anvil]) -> None:
    """With one of two providers away, the other's answer is a balance, but no top-up."""
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


def test_coin_without_a_transfer_is_adopted_once_two_providers_show_it(
    database: str, anvil: Callable[..., Anvil]
) -> None:
    """No provider lies here: one answer is still too little, and waits for the other."""
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


def test_the_read_only_role_sees_why_a_top_up_waits(trio: TreasuryWorld) -> None:
    invent(trio, trio.hot, TEN_THOUSAND)
    trio.catch_up()
    trio.witness()
    ((problem, attempts),) = rows("SELECT problem, attempts FROM treasury_topups WHERE currency = 'USDT'")
    assert (problem, attempts) == ("1 of 3 providers agree, 2 tell otherwise", 1)
