"""Compares the chain with the rows: agreement stays quiet, a deficit stops payouts. On a real node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from actors import context
from actors.signer import sign
from devstack.evm.anvil import Anvil
from models.db.base import execute, rows
from models.ledger.ledger import EQUITY, GATEWAY, Account
from models.payouts import freezes
from models.spends import rows as spends
from models.treasury import reconciliation
from tests.actors.scan.world import ETHER, FORWARDER, USDT_UNITS
from tests.actors.treasury.world import TreasuryWorld
from tests.models.ledger.figures import net_of
from tests.models.treasury.builders import COLD, topup_rows
from tests.peers.anvil import BUYER, calldata
from tests.peers.json_rpc_node import Refusal
from tests.peers.paper_chain import transfer

STRANGER = "0x" + "66" * 20


@pytest.fixture
def world(database: str, anvil: Callable[..., Anvil]) -> Iterator[TreasuryWorld]:
    for made in TreasuryWorld(database, anvil).opened():
        made.send(made.hot, 5 * USDT_UNITS)
        made.advance()
        made.assert_agreed()
        yield made


def sent(world: TreasuryWorld, units: int = USDT_UNITS) -> object:
    """Send tokens from the hot wallet as a spend of the gateway; the filler's purpose means nothing."""
    ctx = context.context()
    pair = ctx.catalogue.pairs["USDT", "ethereum"]
    return sign.start(
        ctx,
        world.network,
        purpose="filler",
        intent=transfer(sign.hot_wallet(world.network), STRANGER, units, pair),
    )


def test_a_departure_counts_before_its_block_is_noted(world: TreasuryWorld) -> None:
    spend_id = sent(world)
    world.advance()
    assert spends.find(spend_id).state == "sent"  # type: ignore[union-attr,arg-type]
    world.assert_agreed(4)

    world.watch()
    world.reconcile(2)
    world.bury()
    world.assert_agreed()
    assert world.spends("state") == [("confirmed",)]


def test_a_sent_spend_in_no_block_does_not_count(world: TreasuryWorld) -> None:
    world.advance()
    sent(world)
    world.assert_agreed()


def test_a_spend_that_a_reorg_moved_is_looked_up(world: TreasuryWorld) -> None:
    sent(world)
    world.follow()
    world.advance()
    raw = "0x" + bytes(rows("SELECT raw FROM spend_attempts")[0][0]).hex()
    world.reorg(2, (raw, 1))
    world.advance(2)
    world.assert_agreed(4)
    assert world.frozen() == []


def test_a_theft_from_the_hot_wallet_freezes_payouts_and_names_coin_and_place(world: TreasuryWorld) -> None:
    world.drain(world.hot, USDT_UNITS)
    world.reconcile(2)
    assert ("USDT", "hot", 2) in world.findings()
    assert world.frozen() == []
    # The same block again proves no more.
    world.reconcile()
    assert world.frozen() == []

    world.advance()
    world.reconcile()
    assert len(world.frozen()) == 1
    reason = next(listed.detail for listed in reconciliation.listing("ethereum") if listed.currency == "USDT")
    assert f"USDT on ethereum: the hot wallet {world.hot} should hold 50" in reason
    assert "and holds 40" in reason
    assert [listed.scope for listed in freezes.listing()] == ["network"]


def test_one_wrong_answer_freezes_nothing(world: TreasuryWorld) -> None:
    world.advance()
    world.providers[0].lies["eth_call"] = lambda _truth, _params: "0x" + "0" * 64
    world.reconcile()
    assert world.findings() == [("USDT", "hot", 1)] or len(world.findings()) >= 1
    world.providers[0].lies.clear()
    world.advance()
    world.assert_agreed()


def test_no_answer_is_not_a_finding(world: TreasuryWorld) -> None:
    world.advance()
    before = reconciliation.listing()
    world.providers[0].lies["eth_getBalance"] = Refusal(-32000, "missing trie node")
    world.reconcile()
    assert [listed.height for listed in reconciliation.listing()] == [listed.height for listed in before]


def test_coin_passed_on_by_a_contract_becomes_the_gateways_own(world: TreasuryWorld) -> None:
    world.node.send(FORWARDER, value=ETHER, data=calldata("forward(address)", world.hot))
    world._nonce += 1
    world.advance()
    world.reconcile(3)
    assert topup_rows("units", "origin")[-1] == (ETHER, "balance")
    world.bury()
    world.poll()
    world.assert_agreed()
    assert world.frozen() == []
    assert net_of(Account(GATEWAY, EQUITY, "ETH")) == 6 * ETHER


def test_a_surplus_of_tokens_freezes_until_it_is_adopted(world: TreasuryWorld) -> None:
    """The scan reads every transfer of a token, so that a surplus means a missed one."""
    world.providers[0].hide_logs()
    world.send(world.hot, 3 * USDT_UNITS)
    world.advance()
    world.reconcile(3)
    assert ("USDT", "hot", 3) in world.findings()
    assert len(world.frozen()) == 1

    kept = next(listed for listed in reconciliation.listing("ethereum") if listed.currency == "USDT")
    books = reconciliation.read_books("ethereum")
    assert books is not None
    assert reconciliation.adopt("ethereum", "USDT", kept.chain_units - kept.expected_units, books, origin="adopted")
    world.advance()
    world.assert_agreed()
    assert len(world.frozen()) == 1

    # The transfer is found later: it was counted, and gets its name.
    world.providers[0].lies.clear()
    world.advance(8)
    world.rescan()
    world.assert_agreed()
    assert len([row for row in topup_rows("units", "currency") if row == (30 * 10**18, "USDT")]) == 1


def test_a_balance_from_before_the_first_comparison_is_the_gateways_own(
    database: str, anvil: Callable[..., Anvil]
) -> None:
    world = TreasuryWorld(database, anvil)
    for made in world.opened(gas_wei=0):
        execute("DELETE FROM treasury_topups")
        made.token(made.hot)
        made.reconcile()
        made.advance()
        made.assert_agreed()
        assert topup_rows("currency", "origin") == [("USDT", "balance")]


def test_a_robbed_deposit_address_freezes_payouts(world: TreasuryWorld) -> None:
    mine = world.paid_invoice()
    world.drain(mine.address.lower(), 1)
    for _ in range(3):
        # Other deposits come and go; the short address is compared again.
        world.paid_invoice()
        world.reconcile()
    assert ("USDT", "deposits", 3) in world.findings()
    assert mine.address.lower() in world.frozen()[0]


def test_an_emptied_cold_address_is_reported_and_freezes_nothing(database: str, anvil: Callable[..., Anvil]) -> None:
    env = {"ETHEREUM_COLD_ADDRESS": COLD, "HOT_LIMIT_USD": "3"}
    for world in TreasuryWorld(database, anvil, **env).opened(gas_wei=2 * ETHER):
        world.send(world.hot, 20 * USDT_UNITS)
        world.advance()
        world.keep_and_follow()
        world.bury()
        world.drain(COLD, USDT_UNITS)
        world.reconcile(4)
        assert ("USDT", "cold", 4) in world.findings()
        assert world.frozen() == []
        # Money that returns is not the operator's a second time.
        world.drain(COLD, 1)
        assert net_of(Account(GATEWAY, EQUITY, "USDT")) == 200 * 10**18


def test_a_reorg_during_the_comparison_leaves_no_finding(world: TreasuryWorld) -> None:
    world.advance()
    height = reconciliation.last_height("ethereum")

    def reorg(truth: object, _params: object) -> object:
        execute("UPDATE chain_blocks SET hash = 'other' WHERE height = (SELECT max(height) FROM chain_blocks)")
        return truth

    world.providers[0].lies["eth_call"] = reorg
    world.reconcile()
    assert reconciliation.last_height("ethereum") == height


def test_gas_sent_by_a_buyer_to_a_stranger_does_not_count(world: TreasuryWorld) -> None:
    world.node.send(STRANGER, value=ETHER, sender=BUYER)
    world._nonce += 1
    world.advance()
    world.assert_agreed()
