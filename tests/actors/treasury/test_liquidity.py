"""A network's held and usable coin is the same before, during and after a sweep. On a real node."""

from __future__ import annotations

from actors import context
from models.db.base import execute, rows
from models.treasury import liquidity
from tests.actors.scan.world import ETHER, USDT_UNITS
from tests.actors.treasury.world import TreasuryWorld
from tests.peers.json_rpc_node import Refusal

SENT = 50 * USDT_UNITS


def figures(world: TreasuryWorld, currency: str = "USDT") -> tuple[int, int]:
    """Return a coin's held and usable sums, in the chain's units."""
    ctx = context.context()
    ctx.market.forget()
    stocks = liquidity.stocks(
        ctx.catalogue, ctx.market.read(), [world.network.code], fee_max_percent=ctx.settings.sweep_fee_max_percent
    )
    (stock,) = (each for each in stocks if each.currency == currency)
    pair = ctx.catalogue.pairs[currency, world.network.code]
    scale = ctx.catalogue.scale(currency)
    return pair.from_ledger(stock.held_units, scale), pair.from_ledger(stock.usable_units, scale)


def signed_sweep(world: TreasuryWorld, units: int = SENT) -> None:
    """Sweep a deposit up to the signature: no node takes the bytes."""
    world.paid_invoice(units)
    world.keep_and_follow()
    world.reconcile()
    world.providers[0].lies["eth_sendRawTransaction"] = Refusal(-32000, "txpool is full")
    world.keep()
    assert world.spends("purpose", "state")[-1] == ("sweep", "signed")


def take(world: TreasuryWorld) -> None:
    """Let a node take the signed bytes."""
    world.providers[0].lies.clear()
    execute("UPDATE spend_attempts SET sent_at = NULL")
    world.watch()
    assert world.spends("purpose", "state")[-1] == ("sweep", "sent")


def test_a_sweep_counts_once_from_its_signature_to_its_block(world: TreasuryWorld) -> None:
    signed_sweep(world)
    assert figures(world) == (SENT, SENT), "signed after the last comparison"
    world.advance()
    world.reconcile()
    assert figures(world) == (SENT, SENT), "compared while it was in no block"
    take(world)
    world.advance()
    assert figures(world) == (SENT, SENT), "in a block, unknown to the row"
    world.reconcile()
    assert world.spends("purpose", "state")[-1] == ("sweep", "sent")
    assert figures(world) == (SENT, SENT), "compared in that block, unknown to the row"
    world.watch()
    assert figures(world) == (SENT, SENT), "its row has the block"
    world.advance()
    world.reconcile()
    assert figures(world) == (SENT, SENT), "and so has the next comparison"
    world.assert_agreed()


def test_a_comparison_before_a_sweeps_block_is_without_it(world: TreasuryWorld) -> None:
    signed_sweep(world)
    world.advance()
    take(world)
    world.mine()
    world.reconcile()
    assert figures(world) == (SENT, SENT), "its block is not scanned"
    world.assert_agreed()


def test_a_sweep_whose_block_was_replaced_counts_once(world: TreasuryWorld) -> None:
    signed_sweep(world)
    take(world)
    world.follow()
    assert figures(world) == (SENT, SENT)
    world.reorg(1)
    world.advance()
    world.watch()
    assert rows("SELECT mined_txid IS NULL FROM spends WHERE purpose = 'sweep'") == [(True,)]
    assert figures(world) == (SENT, SENT), "compared before its first block"
    world.watch()
    world.follow()
    world.reconcile()
    assert figures(world) == (SENT, SENT)
    world.reorg(1)
    world.advance()
    world.watch()
    assert rows("SELECT mined_txid IS NULL FROM spends WHERE purpose = 'sweep'") == [(True,)]
    assert figures(world) == (SENT, SENT), "the comparison has it already"


def test_gas_being_sent_to_an_address_counts_as_left(world: TreasuryWorld) -> None:
    world.paid_invoice(SENT)
    world.reconcile()
    ether = figures(world, "ETH")
    world.keep()
    ((units,),) = rows("SELECT token_units FROM spends WHERE purpose = 'gas'")
    assert 0 < units < ETHER
    assert figures(world, "ETH") == (ether[0], ether[1] - units), "it is held until its inclusion"
