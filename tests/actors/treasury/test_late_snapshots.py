"""On a chain that reports only its newest balances, they are compared once the scan has reached their block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from actors import context
from actors.signer import sign
from chains.base import Place, ProviderError, Snapshot
from chains.evm.reader import EvmReader
from chains.spending import Intent, Output
from cli.output import CommandError
from cli.treasury import comparison
from cli.treasury.comparison import compared_now
from devstack.evm.anvil import Anvil
from models.db.base import execute, rows
from models.treasury import reconciliation, snapshots
from tests.actors.scan.world import ETHER, USDT_UNITS
from tests.actors.treasury.world import TreasuryWorld
from tests.models.treasury.builders import topup_rows

STRANGER = "0x" + "66" * 20


@dataclass
class NewestOnly:
    """A node without old balances: it answers for its newest block, or for the one that a test sets."""

    world: TreasuryWorld
    honest: Callable[..., Snapshot] = EvmReader.snapshot
    asked: list[int] = field(default_factory=list)
    height: int | None = None
    is_alone: bool = False

    def served(self, monkeypatch: pytest.MonkeyPatch) -> NewestOnly:
        """Let every reader answer like that."""

        def snapshot(chain: EvmReader, places: Sequence[Place], **at: Any) -> Snapshot:
            return self.snapshot(chain, places, **at)

        monkeypatch.setattr(EvmReader, "snapshot", snapshot)
        return self

    def snapshot(
        self, chain: EvmReader, places: Sequence[Place], *, height: int, block_hash: str, witnesses: int = 1
    ) -> Snapshot:
        del height, block_hash
        if self.is_alone and witnesses > 1:
            raise ProviderError("nobody else tells it")
        self.asked.append(witnesses)
        header = self.world.node.ask(
            "eth_getBlockByNumber", "latest" if self.height is None else hex(self.height), False
        )
        return self.honest(
            chain, places, height=int(header["number"], 16), block_hash=header["hash"], witnesses=witnesses
        )


@pytest.fixture
def newest(database: str, anvil: Callable[..., Anvil], monkeypatch: pytest.MonkeyPatch) -> Iterator[NewestOnly]:
    for world in TreasuryWorld(database, anvil).opened():
        world.send(world.hot, 5 * USDT_UNITS)
        world.advance()
        world.assert_agreed()
        yield NewestOnly(world).served(monkeypatch)


def sent(world: TreasuryWorld, units: int = USDT_UNITS) -> None:
    """Send tokens from the hot wallet as a spend of the gateway; the filler's purpose means nothing."""
    pair = context.context().catalogue.pairs["USDT", "ethereum"]
    wallet = sign.hot_wallet(world.network)
    intent = Intent(wallet=wallet, pair=pair, outputs=(Output(recipient=STRANGER, units=units),))
    assert sign.start(context.context(), world.network, purpose="filler", intent=intent)


def ahead(world: TreasuryWorld) -> int:
    """Have one block scanned and another one mined, unscanned; return its height."""
    world.advance()
    return int(world.node.mine())


def kept() -> list[int]:
    return [height for (height,) in rows("SELECT DISTINCT height FROM balance_snapshots")]


def test_a_snapshot_waits_for_the_scan_and_is_compared_at_its_own_block(newest: NewestOnly) -> None:
    world = newest.world
    before = reconciliation.last_height("ethereum")
    sent(world)
    height = ahead(world)
    world.reconcile()
    world.reconcile()
    assert (kept(), reconciliation.last_height("ethereum")) == ([height], before)
    assert len(newest.asked) == 1

    # The scan goes on, past further movements.
    sent(world, 2 * USDT_UNITS)
    world.advance(2)
    world.reconcile()
    assert (kept(), reconciliation.last_height("ethereum")) == ([], height)
    assert world.findings() == []
    assert [listed.chain_units for listed in reconciliation.listing() if listed.currency == "USDT"] == [40 * 10**18]


def test_a_theft_shown_by_a_snapshot_freezes_payouts(newest: NewestOnly) -> None:
    world = newest.world
    world.drain(world.hot, USDT_UNITS)
    for _ in range(3):
        assert world.frozen() == []
        ahead(world)
        world.reconcile()
        world.advance()
        world.reconcile()
    assert ("USDT", "hot", 3) in world.findings()
    assert len(world.frozen()) == 1


def test_a_snapshot_whose_block_a_reorg_took_is_dropped(newest: NewestOnly) -> None:
    world = newest.world
    before = reconciliation.last_height("ethereum")
    sent(world)
    height = ahead(world)
    world.reconcile()
    assert kept() == [height]
    world.reorg(1)
    world.advance()
    world.reconcile()
    assert (kept(), reconciliation.last_height("ethereum")) == ([], before)
    # The next one is taken as usual.
    ahead(world)
    world.reconcile()
    world.advance()
    world.reconcile()
    assert reconciliation.last_height("ethereum") > height
    assert world.findings() == []


def test_a_snapshot_that_a_reorg_takes_during_its_comparison_leaves_no_trace(
    newest: NewestOnly, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = newest.world
    before = reconciliation.last_height("ethereum")
    ahead(world)
    world.reconcile()
    world.advance()
    monkeypatch.setattr(reconciliation, "is_scanned", lambda *_of: False)
    world.reconcile()
    monkeypatch.undo()
    assert (kept(), reconciliation.last_height("ethereum")) == ([], before)


def test_a_snapshot_that_the_scan_never_reaches_is_deleted(newest: NewestOnly) -> None:
    world = newest.world
    ahead(world)
    world.reconcile()
    execute("UPDATE balance_snapshots SET height = height + 1000000, block_hash = '0xmade-up'")
    world.advance()
    world.reconcile()
    assert len(newest.asked) == 1

    execute("UPDATE balance_snapshots SET taken_at = taken_at - make_interval(secs => %s)", (snapshots.KEPT_S,))
    world.reconcile()
    assert len(newest.asked) == 2


def test_a_snapshot_older_than_the_last_comparison_does_not_count(newest: NewestOnly) -> None:
    world = newest.world
    newest.height = reconciliation.last_height("ethereum")
    world.advance()
    world.reconcile()
    assert (len(newest.asked), kept()) == (1, [])


def test_coin_swept_before_the_scan_reached_the_snapshot_is_not_missed(newest: NewestOnly) -> None:
    world = newest.world
    world.paid_invoice()
    world.keep_and_follow()
    world.keep()
    world.node.mine()
    # The sweep is in the block of the balances, which the scan has not read.
    world.reconcile()
    assert [units for place, units in rows("SELECT place, units FROM balance_snapshots") if place == "deposits"] == []
    world.follow()
    world.reconcile()
    assert (world.findings(), world.frozen()) == ([], [])


def test_an_address_whose_deposit_leaves_meanwhile_is_left_out(newest: NewestOnly) -> None:
    world = newest.world
    world.paid_invoice()
    world.keep_and_follow()
    world.node.mine()
    world.reconcile()
    assert [units for place, units in rows("SELECT place, units FROM balance_snapshots") if place == "deposits"] == [
        USDT_UNITS
    ]
    world.keep()
    world.follow()
    world.reconcile()
    assert (world.findings(), world.frozen()) == ([], [])
    assert [listed.place for listed in reconciliation.listing() if listed.place == "deposits"] == []


def test_a_robbed_address_is_reported(newest: NewestOnly) -> None:
    world = newest.world
    mine = world.paid_invoice()
    world.drain(mine.address.lower(), 1)
    world.node.mine()
    world.reconcile()
    world.advance()
    world.reconcile()
    assert ("USDT", "deposits", 1) in world.findings()


def test_a_surplus_is_adopted_once_more_witnesses_show_it_in_a_scanned_block(newest: NewestOnly) -> None:
    world = newest.world
    execute("DELETE FROM reconciliations WHERE currency = 'ETH'")
    world.node.ask("anvil_setBalance", world.hot, hex(9 * ETHER))
    newest.is_alone = True
    for _ in range(2):
        ahead(world)
        world.reconcile()
        world.advance()
        world.reconcile()
    assert ("ETH", "balance") not in topup_rows("currency", "origin")

    newest.is_alone = False
    newest.asked.clear()
    for _ in range(3):
        world.node.mine()
        world.reconcile()
        world.advance()
    assert newest.asked == [1, 2]
    assert topup_rows("currency", "units", "origin")[-1] == ("ETH", 4 * ETHER, "balance")
    world.reconcile(2)
    assert world.findings() == []


def test_an_operators_comparison_waits_for_the_scan(newest: NewestOnly, monkeypatch: pytest.MonkeyPatch) -> None:
    world = newest.world
    height = ahead(world)
    monkeypatch.setattr(comparison, "sleep", lambda _s: world.advance())
    finding, books = compared_now(context.context(), "ethereum", "USDT")
    assert (finding.detail, books.cursor.height) == ("", height)

    ahead(world)
    monkeypatch.setattr(comparison, "sleep", lambda _s: None)
    with pytest.raises(CommandError, match="cannot be compared now"):
        compared_now(context.context(), "ethereum", "USDT")
