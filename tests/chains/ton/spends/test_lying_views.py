"""One provider alone neither refuses a payout, nor ends one, nor chooses how coin is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chains.base import ProviderError
from chains.spending import Effect, FateKind, LoneRefusalError, Output, OutputFate, SpendRefusedError
from chains.ton.spends import fate as spend_fate
from chains.ton.spends.fate import WAITING, judge
from chains.ton.spends.trace import End
from tests.chains.ton.spends.world import (
    FRESH,
    HOT_KEY,
    JETTONS,
    LIFE_S,
    NETWORK,
    OURS,
    SILENT,
    THEIRS,
    USD,
    USDT,
    World,
    case,
    moved,
    payment,
    payments,
    world,
)
from tests.peers.ton.chain import TON

Twist = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


@pytest.fixture
def two(ton: World) -> Iterator[World]:
    with world(ton.ton, 2) as both:
        yield both


def as_a_jetton_wallet(truth: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Report a fresh recipient as a wallet of USDT."""
    if asked["address"] != FRESH:
        return truth
    code = "te6ccgEBAQEAIwAIQgKPRS16Tf10BmtoI2UXclntBXNENb52tf1L1divK3w9aA=="
    return truth | {"state": "active", "code": code, "data": code}


def at(address: str, **changes: object) -> Twist:
    return lambda truth, asked: truth | changes if asked["address"] == address else truth


def test_one_of_two_does_not_refuse_a_payout(two: World) -> None:
    assert list(JETTONS) == [USD.master]
    two.nodes[0].lies["getAddressInformation"] = as_a_jetton_wallet
    assert two.drafted(payment(7, pair=USDT, to=FRESH)).intent.units == 7
    with pytest.raises(ProviderError, match="1 providers refuse"):
        two.spender.refuses(payment(7, pair=USDT, to=FRESH))
    two.nodes[1].lies["getAddressInformation"] = as_a_jetton_wallet
    with pytest.raises(SpendRefusedError):
        two.drafted(payment(7, pair=USDT, to=FRESH))
    assert two.spender.refuses(payment(7, pair=USDT, to=FRESH))


def test_one_that_answers_alone_does_not_refuse_a_payout(ton: World) -> None:
    with world(ton.ton, 1, urls=[SILENT]) as alone:
        alone.nodes[0].lies["getAddressInformation"] = as_a_jetton_wallet
        with pytest.raises(LoneRefusalError):
            alone.drafted(payment(TON, to=FRESH))


def test_one_of_two_does_not_have_coin_for_a_fresh_address_come_back(two: World) -> None:
    two.nodes[0].lies["getAddressInformation"] = at(FRESH, state="active")
    with pytest.raises(ProviderError, match="disagree whether a recipient has a contract"):
        two.drafted(payment(TON, to=FRESH))


def test_one_of_two_does_not_make_the_wallet_richer(two: World) -> None:
    two.nodes[0].lies["getAddressInformation"] = at(HOT_KEY.address, balance=str(10**6 * TON))
    with pytest.raises(ProviderError, match="with all that waits"):
        two.drafted(payment(2_000 * TON))


def test_one_of_two_does_not_raise_the_number(two: World) -> None:
    two.paid(payment(TON))
    two.nodes[0].lag(50)
    assert two.spender.next_counter(HOT_KEY.address, ours=0) in {0, 1}
    assert two.spender.waiting_counter(HOT_KEY.address, ours=0, cautious=True) == 1
    assert two.spender.waiting_counter(HOT_KEY.address, ours=5, cautious=True) == 5


def test_one_alone_does_not_say_that_a_payout_had_no_effect(ton: World) -> None:
    with world(ton.ton, 1, urls=[SILENT]) as alone:
        draft, attempt = ton.signed(payment(2 * TON, to=THEIRS))
        _, thief = ton.signed(payment(TON, to=FRESH))
        alone.spender.send(thief.raw)
        ton.chain.settle()
        ton.chain.mine(9)
        with pytest.raises(ProviderError, match="one provider alone says that a spend is dead"):
            alone.spender.fate(case(draft, attempt))


def test_of_two_that_disagree_about_a_death_none_is_believed(two: World) -> None:
    draft, attempt = two.signed(payment(2 * TON))
    two.chain.advance(LIFE_S + 2)
    two.chain.mine(9)
    assert two.spender.fate(case(draft, attempt)).cause == "expired"
    # To the one that lags, the end has not come.
    two.nodes[0].lag(9)
    assert two.spender.fate(case(draft, attempt)).kind is FateKind.WAITING


def test_a_payout_that_one_of_two_hides_is_on_its_way(two: World) -> None:
    draft, attempt = two.sent(payment(TON))
    two.chain.settle()
    two.nodes[0].hide(THEIRS)
    fate = two.spender.fate(case(draft, attempt))
    assert (fate.kind, fate.outputs[0].effect, fate.is_witnessed) == (FateKind.INCLUDED, None, True)
    two.nodes[0].be_honest()
    assert two.spender.fate(case(draft, attempt)).is_success


def test_each_of_two_hides_another_payout(two: World) -> None:
    """The first output is shown by both."""
    outputs = [Output(recipient=each, units=TON) for each in (OURS.address, THEIRS, FRESH)]
    draft, attempt = two.sent(payments(*outputs))
    two.chain.settle()
    two.nodes[0].hide(THEIRS)
    two.nodes[1].hide(FRESH)
    fate = two.spender.fate(case(draft, attempt))
    assert [each.effect for each in fate.outputs] == ["exact", None, None]
    assert moved(fate)[HOT_KEY.address, "TON"] == -3 * TON - fate.fee_units


def test_one_that_answers_alone_does_not_free_the_wallet_before_all_has_ended(ton: World) -> None:
    draft, attempt = ton.sent(payment(TON))
    ton.chain.settle()
    with world(ton.ton, 1, urls=[SILENT]) as alone:
        alone.nodes[0].hide(THEIRS)
        with pytest.raises(ProviderError, match="one provider alone"):
            alone.spender.fate(case(draft, attempt))
        alone.nodes[0].be_honest()
        assert not alone.spender.fate(case(draft, attempt)).is_witnessed


def end(effect: Effect, returned_units: int = 0) -> End:
    return End(fate=OutputFate(effect=effect), returned_units=returned_units)


def taken(*ends: End | None, place: int = 5, block_hash: str = "aa", txid: str = "ours") -> spend_fate.Testimony:
    return spend_fate.Testimony(
        kind=FateKind.INCLUDED, txid=txid, change=-3 * TON, ends=ends, place=(place, block_hash)
    )  # fmt: skip


EXACT, BACK = end("exact"), end("none", TON)


@pytest.mark.parametrize(
    ("shown", "effects", "height"),
    [
        ([taken(EXACT, EXACT)] * 2, ["exact", "exact"], 5),
        ([taken(EXACT, None), taken(EXACT, EXACT, place=6)], ["exact", None], 5),
        # One that contradicts the other keeps that output open, and no more.
        ([taken(EXACT, BACK), taken(EXACT, EXACT, place=6)], ["exact", None], 6),
        ([taken(BACK, None), taken(BACK, EXACT, place=6)], ["none", None], 5),
        # Neither shows just these: by the later block they have happened.
        ([taken(EXACT, EXACT, None), taken(EXACT, None, EXACT, place=6)], ["exact", None, None], 6),
        ([taken(EXACT, BACK), taken(EXACT, EXACT), taken(EXACT, EXACT)], ["exact", "exact"], 5),
        ([taken(EXACT, EXACT), taken(EXACT, EXACT), WAITING], ["exact", "exact"], 5),
        ([taken(None, EXACT), taken(EXACT, EXACT), WAITING], [None, "exact"], 5),
        ([taken(EXACT, EXACT), taken(EXACT, EXACT), taken(EXACT, EXACT, block_hash="bb")], ["exact", "exact"], 5),
    ],
)
def test_what_most_show_of_each_output_is_its_end(
    shown: list[spend_fate.Testimony], effects: list[str | None], height: int
) -> None:
    outputs = [Output(recipient=f"0:{place:064x}", units=TON) for place, _ in enumerate(effects)]
    fate = judge(shown, payments(*outputs), NETWORK, len(shown))
    assert (fate.kind, [each.effect for each in fate.outputs], fate.height) == (FateKind.INCLUDED, effects, height)
    assert fate.block_hash == "aa"


@pytest.mark.parametrize(
    ("shown", "providers", "problem"),
    [
        ([taken(EXACT), taken(EXACT, txid="another")], 2, "the transaction of a spend"),
        ([taken(EXACT), taken(EXACT, block_hash="bb")], 2, "the block of a spend"),
        ([taken(BACK)], 2, "one provider alone"),
        ([taken(None)], 2, "one provider alone"),
    ],
)
def test_providers_that_contradict_each_other_about_a_whole_spend_decide_nothing(
    shown: list[spend_fate.Testimony], providers: int, problem: str
) -> None:
    with pytest.raises(ProviderError, match=problem):
        judge(shown, payment(TON), NETWORK, providers)


def test_one_of_two_that_shows_a_spend_does_not_take_it_out_of_waiting() -> None:
    assert judge([taken(EXACT), WAITING], payment(TON), NETWORK, 2).kind is FateKind.WAITING
    assert judge([taken(EXACT), taken(EXACT)], payment(TON), NETWORK, 2).is_witnessed
    assert not judge([taken(EXACT)], payment(TON), NETWORK, 2).is_witnessed


def test_a_lone_end_is_no_witnessed_one() -> None:
    """The others do not answer about it."""
    two_of_three = [taken(EXACT, EXACT)] * 2
    assert judge(two_of_three, payments(*[Output(recipient=THEIRS, units=TON)] * 2), NETWORK, 3).is_witnessed


def test_a_provider_that_leaves_out_a_transaction_contradicts_itself(ton: World) -> None:
    draft, attempt = ton.sent(payment(TON))
    ton.chain.settle()
    ton.ton.give(HOT_KEY.address, 1)
    ton.chain.settle()
    ton.nodes[0].lies["getTransactions"] = lambda truth, _asked: truth[:1] + truth[2:]
    with pytest.raises(ProviderError, match="do not follow each other"):
        ton.spender.fate(case(draft, attempt))
