"""Reorgs deeper than maturity during sweeps: books and balances agree afterwards. On a real node."""

from __future__ import annotations

from models.db.base import rows
from models.invoices.rows import InvoiceRow
from models.spends.tracking import WATCHED_ON_BLOCKS
from models.treasury import sweeps
from tests.actors.scan.world import USDT_UNITS
from tests.actors.treasury.world import TreasuryWorld
from tests.peers.anvil import BUYER


def swept(world: TreasuryWorld) -> tuple[InvoiceRow, int]:
    """Return an invoice with a swept deposit, deeper than any expected reorg, and the height before it."""
    before = world.node.height()
    made = world.paid_invoice()
    world.keep_and_follow(2)
    world.advance(world.network.maturity)
    world.watch()
    assert world.tokens(made.address.lower()) == 0
    return made, before


def undo(world: TreasuryWorld, before: int) -> None:
    """Replace every block above a height; its transactions have to be sent again."""
    assert world.node.height() - before > world.network.maturity
    world.reorg(world.node.height() - before)
    world._nonce = int(world.node.ask("eth_getTransactionCount", BUYER, "latest"), 16)
    world.advance()


def pay_anew(world: TreasuryWorld, made: InvoiceRow, units: int) -> None:
    """Let the buyer pay again by another transaction."""
    world.send("0x" + "77" * 20, 1, currency="ETH")
    world.pay(made, units)
    world.advance()


def settle(world: TreasuryWorld) -> None:
    """Send again the transactions that the reorg took, until everything is final."""
    for _ in range(4):
        world.pass_time(10)
        world.follow()
        world.keep()
    world.confirm()
    world.bury()


def test_a_deposit_paid_again_after_a_deep_reorg_is_swept_by_the_first_sweep(
    world: TreasuryWorld,
) -> None:
    made, before = swept(world)
    undo(world, before)
    pay_anew(world, made, USDT_UNITS)
    settle(world)

    assert world.tokens(made.address.lower()) == 0
    assert rows("SELECT status FROM deposits ORDER BY detected_at")[0] == ("reversed",)
    world.assert_agreed(4)
    assert world.frozen() == []
    assert sweeps.unswept("ethereum", family="evm", limit=9) == []


def test_the_rest_of_a_larger_payment_is_swept_after_the_first_sweep(world: TreasuryWorld) -> None:
    made, before = swept(world)
    undo(world, before)
    pay_anew(world, made, 3 * USDT_UNITS)
    settle(world)
    settle(world)

    assert world.tokens(made.address.lower()) == 0
    assert world.tokens(world.hot) == 3 * USDT_UNITS
    world.assert_agreed(4)
    # A later deposit does not count as swept before.
    world.pay(made, USDT_UNITS)
    world.confirm_sent()
    settle(world)
    assert world.tokens(world.hot) == 4 * USDT_UNITS
    world.assert_agreed(4)
    assert world.frozen() == []


def test_a_confirmed_sweep_that_lost_its_effect_takes_nothing_of_a_new_payment(world: TreasuryWorld) -> None:
    """After the reorg its bytes are included before the buyer pays again: they move nothing."""
    made, before = swept(world)
    undo(world, before)
    settle(world)
    assert ("USDT", "confirmed", False) in world.spends("currency", "state", "is_success")
    pay_anew(world, made, USDT_UNITS)
    settle(world)
    settle(world)

    assert (world.tokens(made.address.lower()), world.tokens(world.hot)) == (0, USDT_UNITS)
    world.advance(world.network.maturity + WATCHED_ON_BLOCKS)
    world.watch()
    world.assert_agreed(4)


def test_a_returning_deposit_is_swept_again_after_its_confirmed_sweep_lost_its_effect(
    world: TreasuryWorld,
) -> None:
    """The same transaction is in a later block than the sweep: the row still names a sweep that moved nothing."""
    before, made = world.node.height(), world.invoice()
    txid, raw = world.signed(made.address.lower(), USDT_UNITS)
    assert world.node.ask("eth_sendRawTransaction", raw) == txid
    world.confirm_sent()
    world.keep_and_follow(2)
    world.advance(world.network.maturity)
    world.watch()
    undo(world, before)
    for _ in range(4):
        world.pass_time(10)
        world.follow()
    assert world.node.ask("eth_sendRawTransaction", raw) == txid
    world.confirm_sent()
    assert ("USDT", "confirmed", False) in world.spends("currency", "state", "is_success")
    assert rows("SELECT status <> 'reversed', sweep_id IS NULL FROM deposits") == [(True, False)]

    world.advance(world.network.maturity + WATCHED_ON_BLOCKS)
    world.watch()
    settle(world)
    assert (world.tokens(made.address.lower()), world.tokens(world.hot)) == (0, USDT_UNITS)
    world.assert_agreed(4)


def test_an_address_whose_confirmed_sweep_left_the_chain_waits_until_it_is_back(world: TreasuryWorld) -> None:
    made, before = swept(world)
    undo(world, before)
    world.watch()
    assert made.address.lower() in sweeps.busy_addresses("ethereum")
