"""A network's scan: every block once and in order, back where the chain went back, and never on a node's silence."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest
import structlog

from actors import network_ticks
from actors.context import Context
from actors.scan import follow as polling
from chains.base import Agreement, Block, BlockScan, Ours, ProviderError, Transfer
from core.settings.settings import load_settings
from models.db.base import app_now, execute, rows
from models.deposits import cursors
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import MATURING
from models.outcomes import reversals
from models.rates.rates import MarketBoard
from tests.models.builders import CATALOGUE, SENDER
from tests.models.invoices.builders import invoice
from tests.models.ledger.figures import held

pytestmark = pytest.mark.usefixtures("sound")

ETHEREUM = CATALOGUE.networks["ethereum"]
TEN = 10_000_000


@dataclass
class Node:
    """A chain that a test makes, seen through a node that may lag behind it."""

    began: datetime
    blocks: list[BlockScan] = field(default_factory=list)
    # Heights that this node does not know yet.
    lag: int = 0
    branch: int = 0
    # As many nodes show this chain, and as many still have what it replaced.
    providers: int = 1
    agree: Agreement = Agreement(same=0, other=1)  # noqa: RUF009
    asked_about: list[tuple[int, str]] = field(default_factory=list)
    final: int | None = None

    def mine(self, count: int = 1, *transfers: Transfer) -> None:
        for number in range(count):
            height = len(self.blocks)
            parent = self.blocks[-1].block.hash if self.blocks else "0x"
            block = Block(
                height=height, hash=f"0x{self.branch}-{height}", parent_height=height - 1, parent_hash=parent,
                time=self.began + timedelta(seconds=height),
            )  # fmt: skip
            self.blocks.append(BlockScan(block=block, transfers=transfers if number == 0 else ()))

    def reorg(self, depth: int) -> None:
        """Drop the last blocks; what is mined next is another branch."""
        del self.blocks[-depth:]
        self.branch += 1

    def head(self) -> int:
        return len(self.blocks) - 1 - self.lag

    def budget(self, **_limits: object) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def final_height(self) -> int | None:
        return self.final

    def agreement(self, height: int, block_hash: str) -> Agreement:
        self.asked_about.append((height, block_hash))
        return self.agree

    def scan(self, after: int, _head: int, ours: Ours, *, whole: bool) -> tuple[BlockScan, ...]:
        del whole
        scan = self.scan_block(after + 1, ours)
        return () if scan is None else (scan,)

    def block(self, height: int) -> Block | None:
        return self.blocks[height].block if height <= self.head() else None

    def scan_block(self, height: int, ours: Ours) -> BlockScan | None:
        if height > self.head():
            return None
        scan = self.blocks[height]
        found = ours.addresses([transfer.recipient for transfer in scan.transfers])
        return replace(scan, transfers=tuple(t for t in scan.transfers if t.recipient in found))


def transfer(to: InvoiceRow, units: int = TEN, *, txid: str = "0xaa", currency: str = "USDT") -> Transfer:
    return Transfer(txid=txid, ordinal="0", currency=currency, units=units, sender=SENDER, recipient=to.address.lower())


@pytest.fixture
def node(database: str, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A chain of three blocks, whose last the gateway has scanned."""
    del database
    chain = Node(began=app_now())
    chain.mine(3)

    class Process:
        catalogue = CATALOGUE
        settings = load_settings(
            {"ENVIRONMENT": "development", "DATABASE_URL": "postgresql://x/y", "REDIS_URL": "redis://x"}
        )
        market = MarketBoard()

    monkeypatch.setattr(network_ticks, "context", lambda: cast("Context", Process()))
    monkeypatch.setattr(network_ticks, "reader", lambda _network, _settings: chain)
    poll()
    return chain


def poll() -> None:
    polling.poll_network("ethereum")


def paid_invoice(node: Node, shop: UUID, blocks: int = 2) -> InvoiceRow:
    """Return an invoice that the first of so many further blocks pays, all of them scanned."""
    made = invoice(shop)
    node.mine(blocks, transfer(made))
    poll()
    return made


def cursor() -> tuple[int, str]:
    found = cursors.read("ethereum")
    assert found is not None
    return found.height, found.hash


def status(of: InvoiceRow) -> str:
    return invoices.reread(of.id).status


def test_a_scan_begins_at_the_head(node: Node) -> None:
    assert cursor() == (node.head(), "0x0-2")


def test_blocks_are_scanned_and_what_they_pay_is_credited(node: Node, shop: UUID) -> None:
    mine = paid_invoice(node, shop, 1)
    assert (status(mine), invoices.reread(mine.id).detected_units) == ("check", 10**19)

    node.mine(ETHEREUM.confirmations - 1)
    poll()

    assert status(mine) == "paid"
    assert cursor() == (node.head(), "0x0-4")
    assert held(shop)[MATURING] > 0


def test_scanning_again_changes_nothing(node: Node, shop: UUID) -> None:
    mine = invoice(shop)
    node.mine(2, transfer(mine))
    for _ in range(3):
        poll()

    assert rows("SELECT status, round FROM deposits") == [("credited", 0)]


def test_a_step_is_bounded_and_rings_for_the_rest(node: Node, rung: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "BLOCKS_PER_STEP", 4)
    node.mine(10)

    poll()
    assert cursor()[0] == 6
    assert rung == ["poll_network:ethereum"]
    poll()
    poll()
    assert cursor()[0] == 12
    assert rung == ["poll_network:ethereum"] * 2


@pytest.mark.parametrize(
    ("network", "currency", "units", "reason"),
    [
        pytest.param("ethereum", "USDT", 1, None, id="the right asset counts however small"),
        pytest.param("ethereum", "DAI", 5 * 10**18, "asset", id="another asset"),
        pytest.param("ethereum", "DAI", 1, "dust", id="dust of another asset"),
        pytest.param("bsc", "USDT", TEN, "network", id="the right asset on another network"),
        pytest.param("bsc", "USDT", 1, "dust", id="dust there"),
    ],
)
def test_what_is_not_what_was_asked_for_is_a_stray(
    node: Node, shop: UUID, network: str, currency: str, units: int, reason: str | None
) -> None:
    columns: dict[str, Any] = {"network": network}
    mine = invoice(shop, **columns)
    node.mine(1, transfer(mine, units, currency=currency))
    poll()

    assert rows("SELECT stray_reason FROM deposits") == [(reason,)]


def test_a_replaced_tip_takes_its_deposit_back(node: Node, shop: UUID) -> None:
    mine = paid_invoice(node, shop)
    assert status(mine) == "paid"

    node.reorg(2)
    node.mine(2)
    poll()
    assert (status(mine), held(shop)) == ("check", {})
    poll()
    assert cursor() == (4, "0x1-4")


def test_a_longer_branch_takes_it_back_and_may_bring_it_again(node: Node, shop: UUID) -> None:
    mine = paid_invoice(node, shop)

    node.reorg(2)
    node.mine(1)
    node.mine(3, transfer(mine))
    poll()

    assert status(mine) == "paid"
    assert rows("SELECT status, round, block_height FROM deposits") == [("credited", 1, 4)]
    assert cursor() == (6, "0x1-6")


@pytest.mark.parametrize("lag", [1, 3])
def test_a_node_that_lags_takes_nothing_back(node: Node, shop: UUID, lag: int) -> None:
    mine = paid_invoice(node, shop, 4)
    before = cursor()

    node.lag = lag
    poll()

    assert (cursor(), status(mine)) == (before, "paid")
    node.lag = 0
    node.mine()
    poll()
    assert cursor()[0] == before[0] + 1


def test_a_lagging_node_of_another_branch_does_prove_a_reorg(node: Node, shop: UUID) -> None:
    mine = paid_invoice(node, shop, 4)

    node.reorg(4)
    node.mine(2)
    poll()

    assert status(mine) == "check"


def test_a_node_in_two_minds_stops_the_step(node: Node, rung: list[str]) -> None:
    """It shows our tip, and a next block that does not stand on it."""
    node.mine(2)
    liar = node.blocks[-1]
    node.blocks[-1] = replace(liar, block=replace(liar.block, parent_hash="0xother"))
    poll()

    assert cursor() == (3, "0x0-3")
    assert rung == []


@pytest.mark.parametrize("providers", [1, 3])
def test_what_stands_on_no_block_of_ours_takes_nothing_back(node: Node, shop: UUID, providers: int) -> None:
    """Whoever makes up a block in the place of ours has to find one that its parent allows."""
    mine = paid_invoice(node, shop)
    truth, node.providers = list(node.blocks), providers
    for height in (3, 4):
        made_up = replace(truth[height].block, hash=f"0xlie-{height}", parent_hash="0xeasy")
        node.blocks[height] = replace(truth[height], block=made_up)
    before = cursor()
    poll()
    assert (cursor(), status(mine)) == (before, "paid")
    # Whether others have it too is asked, so that whoever is alone with it is asked last from now on.
    assert node.asked_about == ([] if providers == 1 else [(3, "0x0-3"), (3, "0xlie-3")])

    node.blocks = truth
    node.mine()
    poll()
    assert cursor()[0] == before[0] + 1


def test_what_is_shown_once_and_then_no_more_takes_nothing_back(node: Node, shop: UUID) -> None:
    mine, truth = paid_invoice(node, shop), node.block
    shown: list[int] = []

    def forgetful(height: int) -> Block | None:
        shown.append(height)
        found = truth(height)
        if found is None or height < 3:
            return found
        return replace(found, hash="0xlie") if shown.count(height) == 1 else None

    node.mine()
    node.blocks[-1] = replace(node.blocks[-1], block=replace(node.blocks[-1].block, parent_hash="0xother"))
    node.block = forgetful  # type: ignore[method-assign]
    before = cursor()
    poll()
    assert shown.count(3) == 2
    assert (cursor(), status(mine)) == (before, "paid")


def test_a_scan_that_died_in_a_reorg_is_finished_before_the_next_goes_on(
    node: Node, shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = paid_invoice(node, shop)
    node.reorg(2)
    node.mine(3)

    with monkeypatch.context() as patched:
        patched.setattr(reversals, "reverse_orphans", _dies_after_the_retreat(cursor()))
        with pytest.raises(KeyboardInterrupt):
            poll()
    assert (cursor(), status(mine)) == ((2, "0x0-2"), "paid")

    poll()
    assert (cursor(), status(mine), held(shop)) == ((5, "0x1-5"), "check", {})


def _dies_after_the_retreat(before: tuple[int, str]) -> Callable[..., bool]:
    def reverse_orphans(*_: object) -> bool:
        if cursor() != before:
            raise KeyboardInterrupt
        return False

    return reverse_orphans


def test_a_reorg_deeper_than_what_is_kept_stands_still_and_raises_an_alarm(node: Node, shop: UUID) -> None:
    mine = paid_invoice(node, shop)
    forget_the_start()
    node.reorg(5)
    node.mine(9)

    with structlog.testing.capture_logs() as logged:
        poll()
        poll()

    assert [entry["log_level"] for entry in logged] == ["error"]
    assert (cursor(), status(mine)) == ((4, "0x0-4"), "paid")
    assert halted() == "a reorg deeper than the kept blocks"


def forget_the_start() -> None:
    """As after so many blocks that those of the beginning are not kept any more."""
    execute("UPDATE chain_cursors SET started_height = 0")


def halted() -> str:
    return str(rows("SELECT halted_reason FROM chain_cursors")[0][0])


def test_a_scan_that_stood_still_goes_on_when_the_chain_is_the_old_one_again(node: Node) -> None:
    node.mine(2)
    poll()
    forget_the_start()
    old = list(node.blocks)
    node.reorg(5)
    node.mine(9)
    poll()

    node.blocks, node.branch = old, 0
    node.mine()
    poll()

    assert (cursor()[0], halted()) == (node.head(), "")


def test_a_reorg_below_the_first_scanned_block_is_followed(node: Node, shop: UUID) -> None:
    """No deposit is looked for down there, so nothing can be missed."""
    mine = paid_invoice(node, shop)
    node.reorg(5)
    node.mine(6, transfer(mine, txid="0xbelow"))
    node.mine(2, transfer(mine))
    poll()
    poll()

    assert (cursor(), status(mine)) == ((7, "0x1-7"), "paid")
    assert rows("SELECT txid, status, round FROM deposits") == [("0xaa", "credited", 1)]


@pytest.mark.parametrize(
    ("same", "other", "goes_back"),
    [
        pytest.param(0, 2, True, id="all have the other block"),
        pytest.param(1, 2, True, id="most have the other block"),
        pytest.param(1, 1, False, id="as many have ours"),
        pytest.param(2, 1, False, id="most have ours"),
        pytest.param(0, 0, True, id="the others cannot tell"),
    ],
)
def test_providers_at_odds_about_a_block_take_nothing_back(
    node: Node, shop: UUID, same: int, other: int, *, goes_back: bool
) -> None:
    mine = paid_invoice(node, shop)
    node.reorg(2)
    node.mine(4)
    node.providers, node.agree = 3, Agreement(same=same, other=other)
    poll()

    assert status(mine) == ("check" if goes_back else "paid")
    assert halted() == ("" if goes_back else "providers disagree about a block")


def test_what_is_final_is_noted_and_never_taken_back(node: Node) -> None:
    for final in (3, None, 2, 4):
        node.final = final
        node.mine()
        poll()

    assert rows("SELECT final_height FROM chain_cursors") == [(4,)]


@pytest.mark.parametrize("depth", [1, 2, 31, 128])
def test_a_fork_is_found_at_any_depth(node: Node, shop: UUID, depth: int) -> None:
    mine = invoice(shop)
    node.mine(140)
    for _ in range(4):
        poll()
    node.mine(depth, transfer(mine))
    for _ in range(4):
        poll()
    assert cursor()[0] == node.head()

    node.reorg(depth)
    node.mine(depth + 1)
    for _ in range(4):
        poll()

    assert cursor() == (node.head(), f"0x1-{node.head()}")
    assert (status(mine), held(shop)) == ("check", {})


def test_a_provider_that_fails_leaves_the_rest_of_the_step_to_be_done(
    node: Node, shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = invoice(shop)
    node.mine(2, transfer(mine))
    with monkeypatch.context() as patched:
        patched.setattr(polling, "settle_owners", lambda *_: None)
        poll()
    assert status(mine) == "check"

    def fail() -> int:
        raise ProviderError

    monkeypatch.setattr(node, "head", fail)
    poll()

    assert status(mine) == "paid"
