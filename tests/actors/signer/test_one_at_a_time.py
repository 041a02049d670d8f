"""A wallet has room for a number of spends in no block, of all purposes; several addresses share one spend of gas.

A spend has left the wallet for good before all its recipients are reached: each output ends by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import pytest

from actors.signer import follow_up, funding, refusals, sign
from actors.signer.sign import WalletBusyError
from chains.spending import (
    Case,
    Fate,
    FateKind,
    Fund,
    InsufficientCoinError,
    Intent,
    Output,
    OutputFate,
    SpendRefusedError,
)
from models.db.base import rows
from models.outcomes import payout_hooks
from models.payouts import freezes
from models.payouts.rows import PayoutRow
from models.spends import reads as spend_reads
from models.spends.rows import Purpose, SpendRow
from models.treasury import sweeps
from tests.actors.signer.moments import once
from tests.actors.signer.world import TOKENS, SpendWorld
from tests.models.builders import CATALOGUE, USDT, assert_sound
from tests.peers.paper_chain import transfer
from tests.peers.paper_spender import PaperSpender

PURPOSES: Final[tuple[Purpose, ...]] = ("payout", "gas", "cold", "filler", "sweep")


def start(world: SpendWorld, purpose: Purpose = "cold", **more: int) -> UUID | None:
    """Sign a spend whose purpose is only its name."""
    world.is_tampered = True
    wallet = sign.hot_wallet(world.network)
    intent = transfer(wallet, "0x" + "c1" * 20, 5, CATALOGUE.pairs["USDT", "ethereum"])
    return sign.start(world.ctx, world.network, purpose=purpose, intent=intent, **more)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_spend_of_any_purpose_takes_the_wallets_room(
    world: SpendWorld, paper: Callable[..., PaperSpender], purpose: Purpose
) -> None:
    spender = paper("counter", in_flight_max=1)
    start(world, purpose)
    for other in PURPOSES:
        with pytest.raises(WalletBusyError):
            start(world, other)
    assert funding.fund(world.ctx, world.network, gas(world, 1)) == 0
    order = world.order()
    world.step()
    assert (world.payout(order).status, world.payout(order).wait_reason) == ("approved", "")
    assert len(spender.drafted) == 1, "nothing is quoted for it"


def test_another_wallets_spends_take_no_room(world: SpendWorld, paper: Callable[..., PaperSpender]) -> None:
    paper("counter", in_flight_max=1)
    start(world)
    wallet = sign.deposit_wallet(world.network, 7)
    intent = transfer(wallet, world.hot, 5, CATALOGUE.pairs["USDT", "ethereum"])
    assert sign.start(world.ctx, world.network, purpose="sweep", intent=intent) is not None


def test_a_slot_before_those_that_wait_is_filled_without_room(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    paper("counter", in_flight_max=1)
    start(world)
    assert start(world, "filler", slot=9) is not None


def test_of_two_spends_for_the_last_room_one_is_signed(world: SpendWorld, paper: Callable[..., PaperSpender]) -> None:
    paper("counter", in_flight_max=2)
    start(world)
    once("spending.quoted", lambda: start(world, "gas"))
    with pytest.raises(WalletBusyError):
        start(world)
    assert spend_reads.waiting_of(world.network.code, world.hot) == 2


def test_a_payout_that_finds_no_room_waits_for_its_turn(world: SpendWorld, paper: Callable[..., PaperSpender]) -> None:
    spender = paper("counter", in_flight_max=1)
    order = world.order()
    once("spending.quoted", lambda: start(world))
    world.step()
    payout = world.payout(order)
    assert (payout.status, payout.wait_reason) == ("approved", "")
    ((txid,),) = rows("SELECT txid FROM spend_attempts")
    spender.include(txid)
    world.scan()
    world.step()
    world.step()
    assert world.payout(order).status == "sent"


# Gas in company -----------------------------------------------------------------------------------------------------


def gas(world: SpendWorld, number: int, units: int = 1_000) -> Fund:
    outputs = (Output(recipient=f"0x{number:040x}", units=units),)
    return Fund(intent=Intent(wallet=sign.hot_wallet(world.network), pair=None, outputs=outputs), cost_units=2)


def funded() -> list[list[str]]:
    """Return the recipients of each spend of gas."""
    listed = rows(
        "SELECT array_agg(right(o.recipient, 1) ORDER BY o.place) FROM spends s"
        " JOIN spend_outputs o ON o.spend_id = s.id WHERE s.purpose = 'gas' GROUP BY s.id ORDER BY s.id"
    )
    return [recipients for (recipients,) in listed]


def test_one_spend_funds_as_many_addresses_as_it_has_outputs(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    paper("counter", outputs_max=2)
    assert funding.fund(world.ctx, world.network, *(gas(world, number) for number in range(1, 6))) == 5
    assert funded() == [["1", "2"], ["3", "4"], ["5"]]
    assert all(spend_reads.is_awaiting_gas("ethereum", f"0x{number:040x}") for number in range(1, 6))


def test_of_one_at_a_time_only_the_first_company_is_funded(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    paper("counter", outputs_max=2, in_flight_max=1)
    assert funding.fund(world.ctx, world.network, *(gas(world, number) for number in range(1, 4))) == 2
    assert funded() == [["1", "2"]]


def test_an_address_beyond_its_limit_is_left_out_of_the_company(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    paper("counter", outputs_max=4)
    most = funding.most_units(world.ctx, world.network)
    for _ in range(funding.FUNDINGS_MAX):
        assert funding.fund(world.ctx, world.network, gas(world, 1)) == 1
    steps = (gas(world, 1), gas(world, 2), gas(world, 3, most + 1), gas(world, 4, most))
    assert funding.fund(world.ctx, world.network, *steps) == 2
    assert funded()[-1] == ["2", "4"]


def test_a_refused_address_keeps_no_other_from_its_gas(world: SpendWorld, paper: Callable[..., PaperSpender]) -> None:
    spender = paper("counter", outputs_max=4)
    spender.refused.add(f"0x{3:040x}")
    assert funding.fund(world.ctx, world.network, *(gas(world, number) for number in range(1, 5))) == 3
    assert funded() == [["1", "2"], ["4"]]
    with pytest.raises(SpendRefusedError):
        funding.fund(world.ctx, world.network, gas(world, 3))


def test_a_hot_wallet_short_of_coin_funds_whom_it_can(
    world: SpendWorld, paper: Callable[..., PaperSpender], monkeypatch: pytest.MonkeyPatch
) -> None:
    spender = paper("counter", outputs_max=4)
    real = spender.draft

    def draft(intent: Intent, *given: object, **more: object) -> object:
        if len(intent.outputs) > 1:
            raise InsufficientCoinError("too little for all")
        return real(intent, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(spender, "draft", draft)
    assert funding.fund(world.ctx, world.network, gas(world, 1), gas(world, 2)) == 2
    assert funded() == [["1"], ["2"]]


def test_a_company_that_cannot_be_funded_keeps_the_count_of_those_before(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    spender = paper("counter", outputs_max=1)
    spender.refused |= {f"0x{2:040x}", f"0x{3:040x}"}
    assert funding.fund(world.ctx, world.network, gas(world, 1), gas(world, 2), gas(world, 3)) == 1
    with pytest.raises(SpendRefusedError):
        funding.fund(world.ctx, world.network, gas(world, 2), gas(world, 3))
    assert funding.fund(world.ctx, world.network) == 0


# On their way -------------------------------------------------------------------------------------------------------


@pytest.fixture
def spender(paper: Callable[..., PaperSpender]) -> PaperSpender:
    return paper("counter", outputs_max=3, in_flight_max=1)


@pytest.fixture
def three(world: SpendWorld, spender: PaperSpender) -> list[PayoutRow]:
    """Three payouts in one spend, of which the second is on its way to its recipient."""
    orders = [world.order() for _ in range(3)]
    world.step()
    spender.undelivered.add(orders[1].address)
    spender.include(world.spend(orders[0]).txid)
    world.scan()
    world.step()
    return orders


def statuses(world: SpendWorld, orders: list[PayoutRow]) -> list[str]:
    return [world.payout(order).status for order in orders]


def test_the_others_are_confirmed_and_the_slow_one_stays_sent(world: SpendWorld, three: list[PayoutRow]) -> None:
    world.confirm()
    world.mine(world.network.maturity)
    world.step(2)
    assert statuses(world, three) == ["confirmed", "sent", "confirmed"]
    slow = world.payout(three[1])
    assert (slow.wait_reason, slow.waiting_for) == (payout_hooks.UNDELIVERED, "network")
    assert (world.held_units(slow), world.spend(slow).state) == (11 * USDT, "mined")


def test_the_wallet_is_free_for_the_next_spend(
    world: SpendWorld, spender: PaperSpender, three: list[PayoutRow]
) -> None:
    promised = spend_reads.promised(world.network.code, world.hot, world.token)
    assert (promised.token_units, promised.gas_units, promised.txids) == (0, 0, frozenset())
    later = world.order()
    world.step()
    assert (world.payout(later).status, world.spend(later).slot) == ("sent", 1)
    spender.include(world.spend(later).txid)
    world.scan()
    world.confirm()
    assert statuses(world, [later, *three]) == ["confirmed", "confirmed", "sent", "confirmed"]


def test_a_slow_output_is_confirmed_when_it_arrives(
    world: SpendWorld, spender: PaperSpender, three: list[PayoutRow]
) -> None:
    world.confirm()
    spender.end(world.spend(three[1]).txid)
    world.scan()
    world.step()
    assert world.payout(three[1]).wait_reason == ""
    world.confirm()
    assert statuses(world, three) == ["confirmed"] * 3
    spend = world.spend(three[1])
    assert (spend.state, spend.effect, spend.mined_height) == ("confirmed", "exact", world.chain.blocks[-1].height - 1)
    assert rows("SELECT units FROM spend_movements WHERE currency = 'USDT'") == [(-3 * TOKENS,)]


def test_a_slow_output_that_comes_back_fails_alone_at_maturity(
    world: SpendWorld, spender: PaperSpender, three: list[PayoutRow]
) -> None:
    world.confirm()
    spender.end(world.spend(three[1]).txid, returned=three[1].address)
    world.scan()
    world.step()
    assert statuses(world, three) == ["confirmed", "sent", "confirmed"]
    world.mine(world.network.maturity)
    world.step()
    assert statuses(world, three) == ["confirmed", "failed", "confirmed"]
    assert world.held_units(three[1]) == 0
    assert rows("SELECT units FROM spend_movements WHERE currency = 'USDT'") == [(-2 * TOKENS,)]


def test_a_look_that_shows_less_than_one_before_changes_nothing(
    world: SpendWorld, spender: PaperSpender, three: list[PayoutRow]
) -> None:
    before = world.spend(three[0])
    spender.undelivered.add(three[0].address)
    world.step(2)
    assert world.spend(three[0]).but(check_at=before.check_at) == before
    spender.undelivered.remove(three[0].address)
    world.confirm()
    assert statuses(world, three) == ["confirmed", "sent", "confirmed"]


def test_what_a_look_shows_first_of_another_block_is_believed(
    world: SpendWorld, spender: PaperSpender, three: list[PayoutRow]
) -> None:
    """The nodes have changed their minds: the attempt is in no block, then in another one."""
    txid = world.spend(three[0]).txid
    del spender.included[txid]
    world.step()
    assert [output.effect for output in world.spend(three[0]).outputs] == [None] * 3
    assert (world.spend(three[0]).state, world.payout(three[1]).wait_reason) == ("sent", "")
    spender.undelivered |= {order.address for order in three}
    spender.include(txid)
    world.scan()
    world.confirm()
    assert (world.spend(three[0]).state, set(statuses(world, three))) == ("mined", {"sent"})


def test_another_effect_waits_for_an_operator_beside_a_slow_one(
    world: SpendWorld, spender: PaperSpender, three: list[PayoutRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = spender.fate

    def fate(case: Case) -> Fate:
        true = real(case)
        if true.kind is not FateKind.INCLUDED:
            return true
        other = OutputFate(effect="other", left_units=TOKENS, arrived_units=0, problem="lost")
        return replace(true, outputs=(other, *true.outputs[1:]))

    monkeypatch.setattr(spender, "fate", fate)
    world.step()
    world.mine(world.network.maturity)
    world.step()
    assert statuses(world, three) == ["sent", "sent", "confirmed"]
    assert world.reasons() == [payout_hooks.UNCLEAR, payout_hooks.UNDELIVERED, ""]
    world.is_tampered = True


def test_a_confirmed_spend_is_not_settled_while_an_end_is_unknown(
    world: SpendWorld, spender: PaperSpender, three: list[PayoutRow]
) -> None:
    """A reorg deeper than was thought possible has taken it, and it was sent again."""
    txid = world.spend(three[0]).txid
    spender.end(txid)
    world.scan()
    world.step()
    world.confirm()
    assert world.spend(three[0]).state == "confirmed"
    del spender.included[txid]
    world.step()
    spender.undelivered.add(three[1].address)
    spender.include(txid)
    world.scan()
    world.step()
    world.settle()
    assert world.spend(three[0]).settled_at is None
    spender.end(txid)
    world.scan()
    world.step()
    world.settle()
    assert world.spend(three[0]).settled_at is not None


def test_gas_that_is_on_its_way_is_not_sent_again(world: SpendWorld, spender: PaperSpender) -> None:
    near, far = (f"0x{number:040x}" for number in (1, 2))
    assert funding.fund(world.ctx, world.network, gas(world, 1), gas(world, 2)) == 2
    ((txid,),) = rows("SELECT txid FROM spend_attempts")
    spender.undelivered.add(far)
    spender.include(txid)
    world.scan()
    world.step()
    assert [spend_reads.is_awaiting_gas("ethereum", each) for each in (near, far)] == [False, True]
    assert sweeps.busy_addresses("ethereum") == {world.hot, far}
    world.mine(world.network.maturity)
    world.step(2)
    assert rows("SELECT state FROM spend_outputs ORDER BY place") == [("confirmed",), ("open",)]
    spender.end(txid)
    world.scan()
    world.step()
    assert not spend_reads.is_awaiting_gas("ethereum", far)
    assert sweeps.busy_addresses("ethereum") == set()


@pytest.mark.parametrize(("waited_s", "pause_s"), [(0, 1), (100, 25), (10_000, 60)])
def test_the_longer_an_output_is_on_its_way_the_rarer_is_it_looked_for(
    world: SpendWorld, three: list[PayoutRow], waited_s: int, pause_s: int
) -> None:
    world.confirm()
    world.pass_time(waited_s)
    assert abs(follow_up._look_again_s(world.network, world.spend(three[1])) - pause_s) <= 1


def test_other_spends_are_looked_at_as_often_as_ever(world: SpendWorld, three: list[PayoutRow]) -> None:
    spend = world.spend(three[0])
    world.pass_time(10_000)

    def pause_s(of: SpendRow) -> int:
        return follow_up._look_again_s(world.network, of)

    often = pause_s(spend)
    assert often == min(follow_up.LOOK_MAX_S, world.network.block_time_ms // 1_000), "two outputs are to be confirmed"
    assert pause_s(spend.but(mined_at=None, outputs=tuple(each.but(effect=None) for each in spend.outputs))) == often
    ended: Any = tuple(each.but(state="failed", effect=None) for each in spend.outputs)
    assert pause_s(spend.but(state="failed", outputs=ended)) == often


@pytest.mark.parametrize("slow", [False, True])
def test_payouts_that_a_token_refused_our_own_wallet_are_each_signed_again(
    world: SpendWorld, spender: PaperSpender, *, slow: bool
) -> None:
    orders = [world.order() for _ in range(3)]
    world.step()
    spender.returned = {order.address for order in orders}
    spender.undelivered = {orders[0].address} if slow else set()
    spender.refused.add(sign.deposit_wallet(world.network, refusals.NEUTRAL_ORDINAL).address)
    txid = world.spend(orders[0]).txid
    spender.include(txid)
    world.scan()
    world.step()
    assert freezes.frozen_coins("ethereum") == {"USDT"}
    world.mine(world.network.maturity)
    world.step()
    assert statuses(world, orders) == ["sent" if slow else "approved", "approved", "approved"]
    assert [world.held_units(order) for order in orders] == [11 * USDT] * 3
    assert_sound()
    if slow:
        spender.end(txid)
        world.scan()
        world.step()
        world.mine(world.network.maturity)
        world.step()
    assert rows("SELECT purpose, state FROM spends") == [("lost", "failed")]
    spender.returned, spender.refused = set(), set()
    freezes.unfreeze("coin", "USDT:ethereum")
    world.due_now()
    world.step()
    assert statuses(world, orders) == ["sent"] * 3
