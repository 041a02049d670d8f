"""Scans every block once and in order, follows reorgs, and takes no step back because a node is silent."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock
from uuid import UUID

import pytest
import structlog

from actors.scan import follow, record
from chains.base import WITNESSES_MIN, Agreement, Block, ProviderError, Transfer
from models.db.base import app_now, execute, rows
from models.deposits import provider_looks
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.ledger import debts
from models.ledger.ledger import AVAILABLE, MATURING
from models.outcomes import reversals
from models.spends import signing_stops
from tests.actors.scan.paper import begin, cursor, poll
from tests.models.builders import CATALOGUE, SENDER, Chain, merchant
from tests.models.invoices.builders import invoice, paid
from tests.models.ledger.figures import balances_of
from tests.peers.paper_reader import PaperReader

pytestmark = pytest.mark.usefixtures("sound")

ETHEREUM = CATALOGUE.networks["ethereum"]
TEN = 10_000_000
ALONE = "one provider alone shows that credited blocks were replaced"


def transfer(to: InvoiceRow, units: int = TEN, *, txid: str = "0xaa", currency: str = "USDT") -> Transfer:
    return Transfer(txid=txid, ordinal="0", currency=currency, units=units, sender=SENDER, recipient=to.address.lower())


@pytest.fixture
def node(database: str, monkeypatch: pytest.MonkeyPatch) -> PaperReader:
    """A chain of three blocks, whose last the gateway has scanned."""
    del database
    chain = begin(monkeypatch, tip=-1)
    chain.mine(count=3)
    poll()
    return chain


def paid_invoice(node: PaperReader, shop: UUID, blocks: int = 2) -> InvoiceRow:
    """Return an invoice paid in the first of several further blocks, all scanned."""
    made = invoice(shop)
    node.mine(transfer(made), count=blocks)
    poll()
    return made


def status(of: InvoiceRow) -> str:
    return invoices.reread(of.id).status


def test_a_scan_begins_at_the_head(node: PaperReader) -> None:
    assert cursor() == (node.head(), "0x0-2")


def test_blocks_are_scanned_and_their_payments_credited(node: PaperReader, shop: UUID) -> None:
    mine = paid_invoice(node, shop, 1)
    assert (status(mine), invoices.reread(mine.id).detected_units) == ("check", 10**19)

    node.mine(count=ETHEREUM.confirmations - 1)
    poll()

    assert status(mine) == "paid"
    assert cursor() == (node.head(), "0x0-4")
    assert balances_of(shop)[MATURING] > 0


def test_scanning_again_changes_nothing(node: PaperReader, shop: UUID) -> None:
    mine = invoice(shop)
    node.mine(transfer(mine), count=2)
    for _ in range(3):
        poll()

    assert rows("SELECT status, round FROM deposits") == [("credited", 0)]


def test_a_step_is_bounded_and_notifies_the_next(
    node: PaperReader, rung: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "BLOCKS_PER_STEP", 4)
    node.mine(count=10)

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
def test_a_payment_in_another_asset_or_network_is_a_stray(
    node: PaperReader, shop: UUID, network: str, currency: str, units: int, reason: str | None
) -> None:
    columns: dict[str, Any] = {"network": network}
    mine = invoice(shop, **columns)
    node.mine(transfer(mine, units, currency=currency))
    poll()

    assert rows("SELECT stray_reason FROM deposits") == [(reason,)]


def test_a_replaced_tip_reverses_its_deposit(node: PaperReader, shop: UUID) -> None:
    mine = paid_invoice(node, shop)
    assert status(mine) == "paid"

    node.reorg(node.tip - 2)
    node.mine(count=2)
    poll()
    assert (status(mine), balances_of(shop)) == ("check", {})
    poll()
    assert cursor() == (4, "0x1-4")


def test_a_longer_branch_reverses_a_deposit_and_may_include_it_again(node: PaperReader, shop: UUID) -> None:
    mine = paid_invoice(node, shop)

    node.reorg(node.tip - 2)
    node.mine()
    node.mine(transfer(mine), count=3)
    poll()

    assert status(mine) == "paid"
    assert rows("SELECT status, round, block_height FROM deposits") == [("credited", 1, 4)]
    assert cursor() == (6, "0x1-6")


@pytest.mark.parametrize("lag", [1, 3])
def test_a_lagging_node_reverses_nothing(node: PaperReader, shop: UUID, lag: int) -> None:
    mine = paid_invoice(node, shop, 4)
    before = cursor()

    node.lag = lag
    poll()

    assert (cursor(), status(mine)) == (before, "paid")
    node.lag = 0
    node.mine()
    poll()
    assert cursor()[0] == before[0] + 1


def test_a_lagging_node_on_another_branch_still_proves_a_reorg(node: PaperReader, shop: UUID) -> None:
    mine = paid_invoice(node, shop, 4)

    node.reorg(node.tip - 4)
    node.mine(count=2)
    poll()

    assert status(mine) == "check"


def test_a_node_that_contradicts_itself_stops_the_step(node: PaperReader, rung: list[str]) -> None:
    """It shows the gateway's tip, and a next block with another parent."""
    node.mine(count=2)
    liar = node.scans[node.tip]
    node.scans[node.tip] = replace(liar, block=replace(liar.block, parent_hash="0xother"))
    poll()

    assert cursor() == (3, "0x0-3")
    assert rung == []
    node.providers = 3
    poll()
    assert node.asked_about == [(4, "0x0-4")], "a provider alone with it rests"


@pytest.mark.parametrize("providers", [1, 3])
def test_a_block_that_is_not_linked_to_our_blocks_reverses_nothing(
    node: PaperReader, shop: UUID, providers: int
) -> None:
    """A provider that invents a block in place of a scanned one has to find one that its parent allows."""
    mine = paid_invoice(node, shop)
    truth, node.providers, node.agree = dict(node.scans), providers, Agreement(same=0, other=2)
    for height in (3, 4):
        made_up = replace(truth[height].block, hash=f"0xlie-{height}", parent_hash="0xeasy")
        node.scans[height] = replace(truth[height], block=made_up)
    before = cursor()
    poll()
    assert (cursor(), status(mine)) == (before, "paid")
    # The scan asks others for the block, so that a provider alone with it is asked last from then on.
    assert node.asked_about == ([] if providers == 1 else [(3, "0x0-3"), (3, "0xlie-3")])

    node.scans = truth
    node.mine()
    poll()
    assert cursor()[0] == before[0] + 1


def test_a_block_that_is_shown_only_once_reverses_nothing(node: PaperReader, shop: UUID) -> None:
    mine, truth = paid_invoice(node, shop), node.block
    shown: list[int] = []

    def forgetful(height: int) -> Block | None:
        shown.append(height)
        lie = truth(height)
        if lie is None or height < 3:
            return lie
        return replace(lie, hash="0xlie") if shown.count(height) == 1 else None

    node.mine()
    node.scans[node.tip] = replace(
        node.scans[node.tip], block=replace(node.scans[node.tip].block, parent_hash="0xother")
    )
    node.block = forgetful  # type: ignore[method-assign]
    before = cursor()
    poll()
    assert shown.count(3) == 2
    assert (cursor(), status(mine)) == (before, "paid")


def test_a_reorg_left_half_done_is_finished_before_the_next_step(
    node: PaperReader, shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = paid_invoice(node, shop)
    node.reorg(node.tip - 2)
    node.mine(count=3)

    with monkeypatch.context() as patched:
        patched.setattr(reversals, "reverse_orphans", _dies_after_the_retreat(cursor()))
        with pytest.raises(KeyboardInterrupt):
            poll()
    assert (cursor(), status(mine)) == ((2, "0x0-2"), "paid")

    poll()
    assert (cursor(), status(mine), balances_of(shop)) == ((5, "0x1-5"), "check", {})


def _dies_after_the_retreat(before: tuple[int, str]) -> Callable[..., bool]:
    def reverse_orphans(*_: object) -> bool:
        if cursor() != before:
            raise KeyboardInterrupt
        return False

    return reverse_orphans


def test_a_reorg_deeper_than_the_kept_blocks_halts_the_scan_and_raises_an_alarm(node: PaperReader, shop: UUID) -> None:
    mine = paid_invoice(node, shop)
    forget_the_start()
    node.reorg(node.tip - 5)
    node.mine(count=9)

    with structlog.testing.capture_logs() as logged:
        poll()
        poll()

    assert [entry["log_level"] for entry in logged] == ["error"]
    assert (cursor(), status(mine)) == ((4, "0x0-4"), "paid")
    assert halted() == "a reorg deeper than the kept blocks"


def forget_the_start() -> None:
    """Forget the first blocks, as after so long that they were pruned."""
    execute("UPDATE chain_cursors SET started_height = 0")


def halted() -> str:
    return str(rows("SELECT halted_reason FROM chain_cursors")[0][0])


def test_a_halted_scan_continues_when_the_old_chain_returns(node: PaperReader) -> None:
    node.mine(count=2)
    poll()
    forget_the_start()
    old = dict(node.scans)
    node.reorg(node.tip - 5)
    node.mine(count=9)
    poll()

    node.scans, node.tip, node.branch = old, max(old), 0
    node.mine()
    poll()

    assert (cursor()[0], halted()) == (node.head(), "")


def test_a_reorg_below_the_first_scanned_block_is_followed(node: PaperReader, shop: UUID) -> None:
    """No deposit is expected below it, so that none can be missed."""
    mine = paid_invoice(node, shop)
    node.reorg(node.tip - 5)
    node.mine(transfer(mine, txid="0xbelow"), count=6)
    node.mine(transfer(mine), count=2)
    poll()
    poll()

    assert (cursor(), status(mine)) == ((7, "0x1-7"), "paid")
    assert rows("SELECT txid, status, round FROM deposits") == [("0xaa", "credited", 1)]


@pytest.mark.parametrize(
    ("same", "other", "reason"),
    [
        pytest.param(0, 2, "", id="all have the other block"),
        pytest.param(1, 2, "", id="most have the other block"),
        pytest.param(1, 1, "providers disagree about a block", id="as many have ours"),
        pytest.param(0, 1, ALONE, id="one alone has the other block"),
        pytest.param(0, 0, ALONE, id="the others cannot tell"),
    ],
)
def test_a_block_that_providers_disagree_about_halts_the_scan_unless_most_have_another(
    node: PaperReader, shop: UUID, same: int, other: int, reason: str
) -> None:
    mine = paid_invoice(node, shop)
    node.reorg(node.tip - 2)
    node.mine(count=4)
    node.providers, node.agree = 3, Agreement(same=same, other=other)
    poll()

    assert status(mine) == ("paid" if reason else "check")
    assert halted() == reason


def test_a_minority_with_another_block_neither_reverses_nor_halts(node: PaperReader, shop: UUID) -> None:
    mine = paid_invoice(node, shop)
    before, truth = cursor(), dict(node.scans)
    node.providers, node.agree = 3, Agreement(same=2, other=1)
    node.reorg(node.tip - 2)
    node.mine(count=2)
    execute("UPDATE chain_cursors SET head_reached_at = NULL")
    poll()
    assert (cursor(), status(mine), halted()) == (before, "paid", "")
    assert rows("SELECT head_reached_at FROM chain_cursors") == [(None,)]
    node.scans = truth
    poll()
    assert rows("SELECT head_reached_at IS NULL FROM chain_cursors") == [(False,)]


def test_no_provider_is_asked_for_a_block_above_the_head(node: PaperReader) -> None:
    """A provider that invented those blocks would answer, and the others would not: no fork could be found."""
    node.mine(count=9)
    poll()
    node.reorg(3)
    node.mine(count=2)
    node.asked.clear()
    poll()
    assert cursor() == (3, "0x0-3")
    assert max(node.asked) == node.head()


def test_one_provider_alone_may_replace_blocks_without_credits(node: PaperReader, shop: UUID) -> None:
    mine = paid_invoice(node, shop, ETHEREUM.confirmations - 1)
    node.reorg(node.tip - ETHEREUM.confirmations + 1)
    node.mine(count=4)
    node.providers, node.agree = 3, Agreement(same=0, other=1)
    poll()
    assert (status(mine), cursor(), halted()) == ("check", (node.head(), f"0x1-{node.head()}"), "")
    assert rows("SELECT status FROM deposits") == [("reversed",)]


def test_one_provider_alone_cannot_replace_credited_blocks_in_any_number_of_steps(
    node: PaperReader, shop: UUID
) -> None:
    """Each step alone reaches only blocks without credits, counted from the end of the step before."""
    mine = paid_invoice(node, shop, ETHEREUM.confirmations)
    assert status(mine) == "paid"
    node.providers, node.agree = 3, Agreement(same=0, other=1)
    for _ in range(ETHEREUM.confirmations):
        fork = cursor()[0] - 1
        node.reorg(fork)
        node.mine()
        poll()

    assert (status(mine), halted()) == ("paid", ALONE)
    node.agree = Agreement(same=0, other=2)
    poll(2)
    assert (status(mine), halted()) == ("check", ""), "two providers may"


def test_two_providers_lower_the_height_that_depth_is_counted_from(node: PaperReader) -> None:
    """Afterwards one provider alone may again replace blocks without credits."""
    node.mine(count=2 * ETHEREUM.confirmations)
    poll()
    fork = cursor()[0] - 2 * ETHEREUM.confirmations
    node.providers, node.agree = 3, Agreement(same=0, other=2)
    node.reorg(fork)
    node.mine(count=2)
    poll(2)
    node.agree = Agreement(same=0, other=1)
    node.reorg(fork + 1)
    node.mine()
    poll(2)
    assert (cursor(), halted()) == ((fork + 2, f"0x2-{fork + 2}"), "")


def test_each_scan_of_a_stopped_network_notifies_recovery(
    node: PaperReader, rung: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = ["seek_departures:ethereum", "resume_signing:ethereum"]
    poll()
    assert rung == []
    signing_stops.stop("ethereum", reason="restored")
    seen: list[bool] = []
    with monkeypatch.context() as watched:
        watched.setattr(follow, "ring", lambda *_bell: seen.append(heads()[1]))
        poll()
    assert seen == [True, True], "the scan has noted before that it caught up"

    rung.clear()
    node.is_silent = True
    poll()
    assert rung == both


@pytest.mark.parametrize("depth", [1, 2])
def test_after_a_retreat_the_scan_has_to_reach_the_head_again(node: PaperReader, depth: int) -> None:
    node.mine(count=3)
    poll()
    signing_stops.stop("ethereum", reason="restored")
    poll()
    assert heads() == (True, True)
    node.reorg(node.tip - depth)
    node.mine(count=depth)
    # A step ends with the retreat.
    poll()
    assert heads() == (False, False)
    poll()
    assert heads() == (True, True)


def test_a_disputed_tip_does_not_count_as_the_head(node: PaperReader) -> None:
    node.mine(count=3)
    poll()
    signing_stops.stop("ethereum", reason="restored")
    execute("UPDATE chain_cursors SET head_reached_at = NULL")
    node.reorg(node.tip - 1)
    node.mine()
    node.providers, node.agree = 2, Agreement(same=1, other=1)
    poll(2)
    assert (heads(), halted()) == ((False, False), "providers disagree about a block")

    # The other provider gives in: the scanned tip is the chain's again, without a new block.
    node.scans[node.tip] = replace(node.scans[node.tip], block=replace(node.scans[node.tip].block, hash=cursor()[1]))
    poll()
    assert (heads(), halted()) == ((True, True), "")


def heads() -> tuple[bool, bool]:
    """Return whether the scan is at its chain's head for the signer, and for the end of a stop."""
    stored = rows(
        "SELECT c.head_reached_at IS NOT NULL, s.is_caught_up FROM chain_cursors c JOIN signing_stops s USING (network)"
    )
    return (stored[0][0], stored[0][1])


@pytest.mark.parametrize("same", [1, 2])
def test_blocks_that_come_too_early_count_once_two_providers_have_them(node: PaperReader, same: int) -> None:
    """A provider that invents them must not lead the scan further than the kept blocks go back."""
    node.providers, node.agree = 2, Agreement(same=same, other=0)
    before = cursor()[0]
    crowd(node, 600)
    poll(20)
    scanned = cursor()[0] - before
    assert scanned == 600 if same == WITNESSES_MIN else scanned < 2 * follow.PACE_SLACK_BLOCKS


@pytest.mark.parametrize(
    ("counts", "reason"), [((1, 1), "providers disagree about a block"), ((1, 0), ""), ((0, 0), "")]
)
def test_blocks_that_come_too_early_halt_the_scan_if_another_provider_has_others(
    node: PaperReader, counts: tuple[int, int], reason: str
) -> None:
    """A provider that lacks them may have them soon; one with other blocks needs an operator's attention."""
    node.providers, node.agree = 2, Agreement(same=counts[0], other=counts[1])
    crowd(node, 2 * follow.PACE_SLACK_BLOCKS)
    with structlog.testing.capture_logs() as logs:
        poll(4)
    assert (halted(), [log["event"] for log in logs].count("scan.providers_disagree")) == (reason, int(bool(reason)))
    assert cursor()[0] < node.head()

    node.agree = Agreement(same=2, other=0)
    poll(2)
    assert (halted(), cursor()[0]) == ("", node.head())


def crowd(node: PaperReader, count: int) -> None:
    """Make blocks that all come in the same second."""
    for _ in range(count):
        node.began -= timedelta(seconds=1)
        node.mine()


def test_blocks_in_time_need_one_provider(node: PaperReader) -> None:
    node.providers, node.agree = 2, Agreement(same=1, other=0)
    execute("UPDATE app_clock SET ahead = interval '1 hour'")
    node.mine(count=200)
    poll(5)
    assert cursor()[0] == node.head()


def test_future_block_times_put_no_block_in_time(node: PaperReader) -> None:
    node.providers, node.agree = 2, Agreement(same=1, other=0)
    node.began += timedelta(days=1)
    node.mine(count=200)
    poll(5)
    assert cursor()[0] < node.head() - 100


def test_a_final_height_is_stored_and_never_lowered(node: PaperReader) -> None:
    for final in (3, None, 2, 4):
        node.final = final
        node.mine()
        poll()

    assert rows("SELECT final_height FROM chain_cursors") == [(4,)]


@pytest.mark.parametrize("depth", [1, 2, 31, 128])
def test_a_fork_is_found_at_any_depth(node: PaperReader, shop: UUID, depth: int) -> None:
    mine = invoice(shop)
    node.mine(count=140)
    for _ in range(4):
        poll()
    node.mine(transfer(mine), count=depth)
    for _ in range(4):
        poll()
    assert cursor()[0] == node.head()

    node.reorg(node.tip - depth)
    node.mine(count=depth + 1)
    for _ in range(4):
        poll()

    assert cursor() == (node.head(), f"0x1-{node.head()}")
    assert (status(mine), balances_of(shop)) == ("check", {})


@pytest.mark.parametrize(
    ("providers", "is_proved", "doubted"), [(2, False, [("ethereum", "0xaa", "0")]), (2, True, []), (1, False, [])]
)
def test_deposits_of_an_unproved_block_need_witnesses(
    node: PaperReader,
    shop: UUID,
    monkeypatch: pytest.MonkeyPatch,
    providers: int,
    doubted: list[tuple[str, str, str]],
    *,
    is_proved: bool,
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(record, "doubt", lambda *key: asked.append(key))
    node.providers, node.agree = providers, Agreement(same=2, other=0)
    node.mine(transfer(invoice(shop)), count=2, is_proved=is_proved)
    poll()
    assert asked == doubted


@pytest.mark.parametrize("error", [ProviderError, LookupError])
def test_a_failed_reading_leaves_the_rest_of_the_step_to_do(
    node: PaperReader, shop: UUID, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    mine = invoice(shop)
    node.mine(transfer(mine), count=2)
    with monkeypatch.context() as patched:
        patched.setattr(follow, "settle_owners", lambda *_: None)
        poll()
    assert status(mine) == "check"

    def fail() -> int:
        raise error

    monkeypatch.setattr(node, "head", fail)
    with contextlib.suppress(LookupError):
        poll()

    assert status(mine) == "paid"


def test_a_credit_that_cannot_mature_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    chain, broken = Chain(), merchant()
    sold = [paid(chain, invoice(each)) for each in (broken, merchant())]
    chain.mature()
    do = debts.give

    def fault(merchant_id: UUID, *args: Any, **more: Any) -> object:
        if merchant_id == broken:
            raise LookupError("a fault")
        return do(merchant_id, *args, **more)

    monkeypatch.setattr(debts, "give", fault)
    ctx = cast("Any", SimpleNamespace(catalogue=CATALOGUE, settings=SimpleNamespace(rescan_s=0)))

    follow._settle(ctx, ETHEREUM, cast("Any", PaperReader(began=app_now())))

    assert [next(iter(balances_of(each.merchant_id))) for each in sold] == [MATURING, AVAILABLE]


def test_deposits_are_settled_even_if_the_providers_cannot_be_counted(
    node: PaperReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled = list[str]()
    monkeypatch.setattr(follow, "_settle", lambda _ctx, network, _chain: settled.append(network.code))
    monkeypatch.setattr(follow, "_note_providers", Mock(side_effect=LookupError("a fault")))
    with pytest.raises(LookupError):
        poll()
    node.is_silent = True
    with pytest.raises(LookupError):
        poll()
    assert settled == ["ethereum"] * 2

    monkeypatch.setattr(follow, "_settle", Mock(side_effect=ValueError("another")))
    monkeypatch.setattr(follow, "_note_providers", noted := Mock())
    with pytest.raises(ValueError, match="another"):
        poll()
    assert noted.called


def test_the_number_of_providers_that_answer_is_recorded_at_a_change_and_from_time_to_time(
    node: PaperReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "_noted_providers", {})

    def noted() -> tuple[int, int]:
        look = provider_looks.read(["ethereum"])["ethereum"]
        return look.providers, look.answering

    node.providers, node.answering = 3, 2
    poll()
    assert noted() == (3, 2)
    node.answering, node.is_silent = 0, True
    with contextlib.suppress(ProviderError):
        poll()
    assert noted() == (3, 0)

    execute("UPDATE provider_looks SET noted_at = noted_at - interval '1 hour'")
    with contextlib.suppress(ProviderError):
        poll()
    assert provider_looks.read(["ethereum"])["ethereum"].age_s > 3000
    monkeypatch.setattr(provider_looks, "EVERY_S", 0.0)
    monkeypatch.setattr(follow, "_noted_providers", {})
    with contextlib.suppress(ProviderError):
        poll()
    assert provider_looks.read(["ethereum"])["ethereum"].age_s < 60
