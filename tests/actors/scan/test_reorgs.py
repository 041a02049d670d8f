"""Reorgs of a real chain reverse payments of invoices in every status, once."""

from __future__ import annotations

import pytest

from models.db.base import execute, one, transaction
from models.deposits import cursors
from models.invoices.rows import InvoiceRow
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, GATEWAY, Account, Transfer
from tests.actors.scan.world import USDT_UNITS, World
from tests.models.invoices.builders import agnostic_invoice, create
from tests.models.ledger.figures import owes

DEPTHS = [1, 16, 128]


def paid_in(world: World, status: str) -> tuple[InvoiceRow, str]:
    """Bring an invoice to a status with one payment; return it, and the payment's bytes."""
    mine = world.invoice()
    units = {"paid": USDT_UNITS, "paid_over": 2 * USDT_UNITS, "check": USDT_UNITS // 4, "wrong_amount": USDT_UNITS // 2}
    if status == "expired":
        world.pass_time(4000)
        world.advance()
        world.settle(mine)
        assert world.status(mine) == "expired"
        return mine, ""
    txid, raw = world.signed(mine.address.lower(), units[status])
    assert world.node.ask("eth_sendRawTransaction", raw) == txid
    world.confirm_sent()
    if status == "wrong_amount":
        world.pass_time(4000)
        world.advance()
        world.settle(mine)
    assert world.status(mine) == status
    return mine, raw


# The status of an invoice whose only payment is lost for good.
AFTER = {"check": "check", "paid": "check", "paid_over": "check", "wrong_amount": "expired", "expired": "expired"}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("status", ["check", "paid", "paid_over", "wrong_amount"])
def test_a_payment_that_left_the_chain_is_reversed(world: World, status: str, depth: int) -> None:
    mine, _ = paid_in(world, status)
    # Buried so that the payment is in the lowest replaced block.
    height = int(one("SELECT block_height FROM deposits")[0])  # type: ignore[index]
    world.mine(max(1, depth - (world.node.height() - height) - 1))
    world.catch_up()
    world.reorg(world.node.height() - height + 1)
    world.advance()

    assert world.status(mine) == AFTER[status]
    assert world.credited() == 0
    assert world.deposits("status") == [("reversed",)]


@pytest.mark.parametrize("status", ["check", "paid", "paid_over", "wrong_amount"])
def test_a_payment_included_in_another_block_counts_once(world: World, status: str) -> None:
    mine, raw = paid_in(world, status)
    credited = world.credited()
    height = int(one("SELECT block_height FROM deposits")[0])  # type: ignore[index]
    depth = world.node.height() - height + 1

    world.reorg(depth, (raw, depth - 1))
    world.advance(world.network.confirmations)

    # A short payment in wrong_amount fell to expired in between, and is a late one now.
    assert world.status(mine) == status
    assert world.deposits("status", "round", "block_height")[0][1:] == (1, height + depth - 1)
    assert world.credited() == credited


def test_a_payment_included_among_others_keeps_its_key(world: World) -> None:
    """Its position among the block's logs changes, but not within its transaction."""
    mine = world.invoice()
    others = [world.signed("0x" + "b2" * 20, 5) for _ in range(2)]
    _, raw = world.signed(mine.address.lower(), USDT_UNITS)
    for _, other in others:
        world.node.ask("eth_sendRawTransaction", other)
    world.node.ask("eth_sendRawTransaction", raw)
    world.confirm_sent()
    depth = world.network.confirmations

    world.reorg(depth, (others[0][1], 0), (others[1][1], 0), (raw, 1))
    world.advance(world.network.confirmations)

    assert world.status(mine) == "paid"
    assert world.deposits() == [("0", "credited", 1)]


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_unpaid_invoice_survives_any_reorg(world: World, depth: int) -> None:
    waiting, chosen = agnostic_invoice(world.shop), world.invoice()
    create(waiting)
    world.advance(depth + 1)
    world.reorg(depth)
    world.advance()

    assert (one("SELECT status FROM invoices WHERE id = %s", (waiting.id,)), world.status(chosen)) == (
        ("select",),
        "check",
    )


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_expired_invoice_is_paid_late_by_a_reorg_and_expires_again(world: World, depth: int) -> None:
    mine, _ = paid_in(world, "expired")
    world.pay(mine)
    height = world.mine()
    world.mine(max(depth, world.network.confirmations) - 1)
    world.catch_up()
    assert world.status(mine) == "wrong_amount"

    world.reorg(world.node.height() - height + 1)
    world.advance()

    assert (world.status(mine), world.credited()) == ("expired", 0)


def test_a_reorg_amid_a_scan_is_noticed_at_the_next_block(world: World) -> None:
    mine = world.invoice()
    world.pay(mine)
    world.mine(6)
    [provider] = world.providers
    seen: list[str] = []

    def reorg_once(truth: object, params: list[object]) -> object:
        seen.append(str(params[0]))
        if len(seen) == 4:
            world.reorg(5)
        return truth

    provider.lies["eth_getLogs"] = reorg_once
    world.catch_up()
    provider.lies.clear()
    world.advance(world.network.confirmations)

    head = world.node.ask("eth_getBlockByNumber", hex(world.node.height()), False)
    assert world.cursor() == (world.node.height(), head["hash"])
    on_chain = [txid for (txid,) in world.deposits("txid") if world.node.receipt(txid)]
    live = one("SELECT count(*) FROM deposits WHERE status <> 'reversed'")
    assert live == (len(on_chain),)


def test_money_spent_before_it_left_the_chain_becomes_debt(world: World) -> None:
    mine, raw = paid_in(world, "paid")
    world.advance(world.network.maturity)
    spendable = ledger.balance(Account(world.shop, AVAILABLE, "USDT"))
    assert spendable > 0
    with transaction():
        ledger.post(
            "test:spent",
            [Transfer(Account(world.shop, AVAILABLE, "USDT"), Account(GATEWAY, "conversion", "USDT"), spendable - 5)],
        )
    height = int(one("SELECT block_height FROM deposits")[0])  # type: ignore[index]
    depth = world.node.height() - height + 1

    world.reorg(depth)
    world.advance()

    assert world.status(mine) == "check"
    assert (owes(world.shop), ledger.balance(Account(world.shop, AVAILABLE, "USDT"))) == (spendable - 5, 0)

    # The next payment repays it first.
    again = world.invoice()
    world.node.ask("eth_sendRawTransaction", raw)
    world.mine()
    world.pay(again)
    world.confirm_sent()
    assert owes(world.shop) == 0
    assert world.status(again) == world.status(mine) == "paid"


def test_a_reorg_deeper_than_the_kept_blocks_halts_the_scan_visibly(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursors, "BLOCKS_KEPT", 8)
    mine, _ = paid_in(world, "paid")
    world.advance(20)
    execute("UPDATE chain_cursors SET started_height = 0")
    before = world.cursor()

    world.reorg(15)
    world.mine()
    world.poll(3)

    assert (world.cursor(), world.halted()) == (before, "a reorg deeper than the kept blocks")
    assert world.status(mine) == "paid"


def test_successive_reorgs_never_credit_twice(world: World) -> None:
    mine, raw = paid_in(world, "paid")
    credited = world.credited()
    for life in range(1, 5):
        height = int(one("SELECT block_height FROM deposits")[0])  # type: ignore[index]
        depth = world.node.height() - height + 1
        world.reorg(depth, (raw, life % depth))
        world.advance(world.network.confirmations)
        assert world.deposits() == [("0", "credited", life)]
        assert (world.status(mine), world.credited()) == ("paid", credited)
