"""A batch is halved where one of its payouts fails it, or where a step has too little time for all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from actors.signer import batches, broadcast
from chains.base import ForeignKeyError, ProviderError
from chains.net.budget import BudgetSpentError
from chains.net.http import RateLimitedError
from chains.spending import Draft, FeeTooHighError, Intent, LoneRefusalError, Purse
from models.payouts.rows import PayoutRow
from tests.actors.signer.world import SpendWorld
from tests.peers.paper_spender import PaperSpender

MANY: Final = 8
Paper = Callable[..., PaperSpender]


@pytest.fixture
def widths(world: SpendWorld) -> dict[str, int]:
    assert batches.width_of(world.network) == 1
    return batches._widths


class Nodes:
    """The providers' failures while spends are drafted, and the sizes of all drafts."""

    def __init__(self, spender: PaperSpender, monkeypatch: pytest.MonkeyPatch) -> None:
        self.culprits: set[str] = set()
        self.error: Exception = ProviderError("code that no node sends whole")
        self.size_max: int | None = None
        self.sizes: list[int] = []
        self._draft = spender.draft
        monkeypatch.setattr(spender, "draft", self.draft)

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        self.sizes.append(len(intent.outputs))
        if self.culprits & {output.recipient for output in intent.outputs}:
            raise self.error
        if self.size_max is not None and len(intent.outputs) > self.size_max:
            raise BudgetSpentError("the step has taken long enough")
        return self._draft(intent, purse, cap_units=cap_units)

    def asked(self) -> list[int]:
        """Return the sizes of the drafts since the last call."""
        sizes, self.sizes = self.sizes, []
        return sizes


def orders(world: SpendWorld, number: int = MANY) -> list[PayoutRow]:
    return [world.order() for _ in range(number)]


def statuses(world: SpendWorld, of: list[PayoutRow]) -> list[str]:
    return [world.payout(order).status for order in of]


def pause_s(world: SpendWorld, order: PayoutRow) -> int:
    """Return the pause that a payout was given; its two moments are written one after the other."""
    row = world.payout(order)
    seconds = (row.due_at - row.updated_at).total_seconds()
    return min((broadcast.PAUSE_S, broadcast.PAUSE_ALONE_S), key=lambda known: abs(known - seconds))


@pytest.mark.parametrize("place", [0, 3, 7])
@pytest.mark.parametrize("error", [ProviderError("cells of too many bytes"), LoneRefusalError("one refuses")])
def test_a_payout_for_which_providers_fail_waits_alone(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch, place: int, error: Exception
) -> None:
    nodes, made = Nodes(paper("counter", outputs_max=MANY), monkeypatch), orders(world)
    nodes.culprits, nodes.error = {made[place].address}, error
    world.step()
    assert statuses(world, made) == ["sent" if each != place else "approved" for each in range(MANY)]
    culprit = world.payout(made[place])
    assert (culprit.wait_reason, culprit.waiting_for) == (broadcast.UNANSWERED, "network")

    nodes.asked()
    world.pass_time(broadcast.PAUSE_ALONE_S + 1)
    others = orders(world)
    world.step()
    assert (statuses(world, others), nodes.asked()) == (["sent"] * MANY, [MANY]), "it is not among them again so soon"
    world.pass_time(broadcast.PAUSE_AT_FAULT_S)
    nodes.culprits.clear()
    world.step()
    assert world.payout(made[place]).status == "sent"


def test_of_one_spend_at_a_time_the_other_half_waits_for_its_turn(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = Nodes(paper("counter", outputs_max=MANY, in_flight_max=1), monkeypatch)
    made = orders(world)
    nodes.culprits = {made[0].address}
    world.step()
    assert statuses(world, made) == ["approved", "sent", *["approved"] * 6]
    assert [world.payout(each).wait_reason for each in made[2:]] == [""] * 6


def test_an_outage_costs_a_bounded_number_of_tries(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = Nodes(paper("counter", outputs_max=64), monkeypatch)
    made = orders(world, 64)
    nodes.culprits = {order.address for order in made}
    world.step()
    assert set(statuses(world, made)) == {"approved"}
    # Each failure beyond the bound is that of a part that is halved no further.
    assert len(nodes.asked()) <= 2 * batches.FAILURES_MAX + 1
    assert {world.payout(each).wait_reason for each in made} == {broadcast.UNANSWERED}
    assert sorted({pause_s(world, each) for each in made}) == [broadcast.PAUSE_S, broadcast.PAUSE_ALONE_S]

    nodes.culprits.clear()
    world.pass_time(broadcast.PAUSE_ALONE_S + 1)
    world.step()
    assert (set(statuses(world, made)), nodes.asked()) == ({"sent"}, [64]), "no outage outlasts itself"


@pytest.mark.parametrize(
    "error", [FeeTooHighError("dear"), ForeignKeyError("others"), RateLimitedError("ton", 5), BudgetSpentError("over")]
)
def test_an_error_that_concerns_the_whole_is_not_searched_for(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    nodes = Nodes(paper("counter", outputs_max=MANY), monkeypatch)
    made = orders(world)
    nodes.culprits, nodes.error = {made[0].address}, error
    world.step()
    assert (nodes.asked(), set(statuses(world, made))) == ([MANY], {"approved"})


def test_a_payout_without_company_that_fails_is_tried_again_soon(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes, [order] = Nodes(paper("counter", outputs_max=MANY), monkeypatch), orders(world, 1)
    nodes.culprits = {order.address}
    world.step()
    assert pause_s(world, order) == broadcast.PAUSE_S


def test_a_batch_for_which_a_step_is_too_short_is_halved_at_the_next(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch, widths: dict[str, int]
) -> None:
    nodes = Nodes(paper("counter", outputs_max=MANY, in_flight_max=1), monkeypatch)
    nodes.size_max = 3
    made = orders(world)
    world.step(3)
    assert (nodes.asked(), statuses(world, made).count("sent")) == ([8, 4, 2], 2)
    assert widths == {world.network.code: 3}


def test_batches_grow_again_with_each_that_is_signed(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch, widths: dict[str, int]
) -> None:
    nodes = Nodes(paper("counter", outputs_max=MANY), monkeypatch)
    widths[world.network.code] = 2
    largest = list[int]()
    for _ in range(6):
        orders(world)
        world.step()
        largest.append(max(nodes.asked()))
    assert largest == [2, 3, 4, 5, 7, MANY]


def test_a_single_payout_for_which_a_step_is_too_short_says_nothing_about_batches(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch, widths: dict[str, int]
) -> None:
    nodes = Nodes(paper("counter", outputs_max=MANY), monkeypatch)
    nodes.size_max = 0
    orders(world, 1)
    world.step()
    assert (nodes.asked(), widths) == ([1], {})


def test_a_small_batch_says_nothing_about_larger_ones(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch, widths: dict[str, int]
) -> None:
    Nodes(paper("counter", outputs_max=MANY), monkeypatch)
    widths[world.network.code] = 4
    orders(world, 1)
    world.step()
    assert batches.width_of(world.network) == 4


def test_the_rest_of_a_step_says_nothing_about_the_next(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch, widths: dict[str, int]
) -> None:
    """A search has used up the time."""
    nodes = Nodes(paper("counter", outputs_max=MANY), monkeypatch)
    made = orders(world)
    nodes.culprits, nodes.size_max = {made[0].address}, 3
    world.step()
    assert (nodes.asked()[:2], widths) == ([8, 4], {})
