"""One provider alone decides nothing about a trial, a price or a height, where there are others."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest

from chains.base import DisagreementError, ProviderError
from chains.solana.spends import fees
from chains.spending import FeeTooHighError, InsufficientCoinError, LoneRefusalError, SpendRefusedError, Sweep, Window
from tests.chains.solana.spends.world import (
    CAP,
    HOLDING,
    HOT_KEY,
    OURS,
    PAIRS,
    PLAIN,
    SIGNATURE,
    SILENT,
    USDT_PAIR,
    World,
    case,
    lying,
    payment,
    providers_of,
    world,
)
from tests.peers.json_rpc_node import Refusal
from tests.peers.solana.chain import SOL

FROZEN = {"InstructionError": [4, {"Custom": 17}]}


def tried(err: Any) -> Any:
    return lambda truth, _params: truth | {"value": truth["value"] | {"err": err}}


def at(**changes: Any) -> Any:
    return lambda truth, _params: truth | {"value": truth["value"] | changes}


def test_one_of_two_providers_neither_refuses_nor_lets_pass(chain: World) -> None:
    with providers_of(chain, 2, simulateTransaction=tried(FROZEN)) as (both, nodes):
        assert both.drafted(payment(5, pair=USDT_PAIR))
        with pytest.raises(ProviderError):
            both.spender.refuses(payment(5, pair=USDT_PAIR))
        lonely = world(chain.solana, [SILENT, nodes[-1].url])
        with pytest.raises(LoneRefusalError, match="frozen"):
            lonely.drafted(payment(5, pair=USDT_PAIR))
        nodes[0].lies |= nodes[-1].lies
        with pytest.raises(SpendRefusedError, match="frozen"):
            both.drafted(payment(5, pair=USDT_PAIR))
    with providers_of(chain, 3, simulateTransaction=tried(FROZEN)) as (three, _):
        assert not three.spender.refuses(payment(5, pair=USDT_PAIR))


@pytest.mark.parametrize(
    "err", ["BlockhashNotFound", {"DuplicateInstruction": 3}, 5, [], {"a": 1, "b": 2}, "ClusterMaintenance"]
)
def test_a_trial_that_fails_for_another_reason_says_nothing(chain: World, err: Any) -> None:
    with providers_of(chain, 1, simulateTransaction=tried(err)) as (one, _), pytest.raises(ProviderError) as caught:
        one.drafted(payment(5, pair=USDT_PAIR))
    assert not isinstance(caught.value, (InsufficientCoinError, LoneRefusalError))


@pytest.mark.parametrize(
    "err", ["AccountNotFound", "InsufficientFundsForFee", {"InsufficientFundsForRent": {"account_index": 0}},
            {"InstructionError": [3, {"Custom": 1}]}],
)  # fmt: skip
def test_a_trial_that_fails_for_want_of_coin_is_no_refusal(chain: World, err: Any) -> None:
    with providers_of(chain, 1, simulateTransaction=tried(err)) as (one, _):
        for ask in (one.drafted, one.spender.refuses):
            with pytest.raises(InsufficientCoinError, match="too little"):
                ask(payment(5, pair=USDT_PAIR))


@pytest.mark.parametrize("lie", [10**9, 438_000_000])
def test_of_two_heights_far_apart_none_makes_a_window(chain: World, lie: int) -> None:
    with providers_of(chain, 2, getBlockHeight=lie) as (both, _):
        if abs(lie - chain.solana.chain.head.height) > 150:
            with pytest.raises(ProviderError, match="a blockhash lives until"):
                both.drafted(payment(PLAIN))
    with providers_of(chain, 3, getBlockHeight=lie) as (three, _):
        claim = three.drafted(payment(PLAIN)).claim
        assert isinstance(claim, Window)
        assert claim.last_block == chain.solana.chain.blocks[-2].height + 150


@pytest.mark.parametrize("providers", [1, 2, 3])
def test_no_provider_shortens_a_window(chain: World, providers: int) -> None:
    with providers_of(chain, providers, getLatestBlockhash=at(lastValidBlockHeight=5)) as (some, _):
        claim = some.drafted(payment(PLAIN)).claim

    assert isinstance(claim, Window)
    assert claim.last_block == chain.solana.chain.blocks[-2].height + 150


def test_no_provider_alone_lengthens_a_window(chain: World) -> None:
    lie = at(lastValidBlockHeight=10**9)
    with (
        providers_of(chain, 1, getLatestBlockhash=lie) as (one, _),
        pytest.raises(ProviderError, match="a blockhash lives until"),
    ):
        one.drafted(payment(PLAIN))
    with providers_of(chain, 1, getLatestBlockhash=lie, getBlockHeight=10**9) as (one, _):
        assert one.drafted(payment(PLAIN)), "before the first scan there is only the node's word"
        with pytest.raises(ProviderError, match="the scan is at"):
            one.drafted(payment(PLAIN), scanned=chain.scanned())


def test_a_lone_price_at_most_doubles_what_two_agreed_on(chain: World) -> None:
    dear = [{"slot": 1, "prioritizationFee": 10**8}] * 150
    with providers_of(chain, 2) as (both, nodes):
        agreed = both.drafted(payment(PLAIN)).offer.terms["price"]
        nodes[-1].lies["getRecentPrioritizationFees"] = dear
        assert both.drafted(payment(PLAIN)).offer.terms["price"] == 2 * agreed
    with providers_of(chain, 3, getRecentPrioritizationFees=dear) as (three, _):
        assert three.drafted(payment(PLAIN)).offer.terms["price"] == agreed


def test_a_price_is_above_three_quarters_of_the_recent_ones(chain: World) -> None:
    recent = [{"slot": each, "prioritizationFee": 100_000 * each} for each in range(100)]
    with providers_of(chain, 1, getRecentPrioritizationFees=recent) as (one, nodes):
        assert one.drafted(payment(PLAIN)).offer.terms["price"] == 7_500_000
        nodes[0].lies["getRecentPrioritizationFees"] = []
        assert one.drafted(payment(PLAIN)).offer.terms["price"] == fees.PRICE_MIN


@pytest.mark.parametrize(
    "lie",
    [
        lambda truth, _params: truth | {"value": truth["value"][:1]},
        lambda truth, _params: truth | {"value": [each and each | {"lamports": -1} for each in truth["value"]]},
        lambda truth, _params: truth | {"value": [each and each | {"data": ["?", "x"]} for each in truth["value"]]},
    ],
)
def test_accounts_that_cannot_be_are_no_answer(chain: World, lie: Any) -> None:
    chain.paid(payment(PLAIN))
    with providers_of(chain, 1, getMultipleAccounts=lie) as (one, _), pytest.raises(ProviderError):
        one.drafted(payment(5, pair=USDT_PAIR))


def test_an_answer_to_sending_with_another_id_is_none(chain: World) -> None:
    _, attempt = chain.signed(payment(PLAIN))
    with (
        providers_of(chain, 1, sendTransaction="1" * 64) as (one, _),
        pytest.raises(ProviderError, match="another transaction's id"),
    ):
        one.spender.send(attempt.raw)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-32002, "Transaction simulation failed: Error processing Instruction 4: custom program error: 0x11"),
        (-32005, "Node is behind by 60 slots"),
        (-32005, "Blockhash not found"),
        (-32603, "already been processed"),
    ],
)
def test_other_refusals_of_bytes_leave_their_fate_open(chain: World, code: int, words: str) -> None:
    _, attempt = chain.signed(payment(PLAIN))
    with (
        providers_of(chain, 1, sendTransaction=Refusal(code, words)) as (one, _),
        pytest.raises(ProviderError),
    ):
        one.spender.send(attempt.raw)


@pytest.mark.parametrize("used", [None, 0, -1])
def test_no_transfer_takes_no_compute_units(chain: World, used: int | None) -> None:
    with providers_of(chain, 1, simulateTransaction=at(unitsConsumed=used)) as (one, _), pytest.raises(ProviderError):
        one.drafted(payment(PLAIN))


@pytest.mark.parametrize("blockhash", ["", "x", "0" * 32, "1" * 31, "1" * 33])
def test_a_blockhash_that_is_none_is_no_answer(chain: World, blockhash: str) -> None:
    with providers_of(chain, 1, getLatestBlockhash=at(blockhash=blockhash)) as (one, _), pytest.raises(ProviderError):
        one.drafted(payment(PLAIN))


def test_costs_include_the_rent_of_a_new_account_as_the_chain_tells_it(chain: World) -> None:
    costs = fees.costs(chain.providers, PAIRS, cap_units=CAP)

    usdt, sol = costs["USDT"], costs["SOL"]
    token_fee = -(-fees.TOKEN_UNITS * fees.PRICE_MIN // 10**6)
    assert usdt.payout_units == SIGNATURE + token_fee + HOLDING
    assert usdt.sweep_units == 2 * SIGNATURE + token_fee
    assert sol.payout_units == SIGNATURE + -(-fees.COIN_UNITS * fees.PRICE_MIN // 10**6)
    assert chain.drafted(payment(5, pair=USDT_PAIR)).offer.ceiling_units <= usdt.payout_units
    assert chain.drafted(payment(PLAIN)).offer.ceiling_units <= sol.payout_units
    assert fees.costs(chain.providers, PAIRS, cap_units=7)["USDT"].payout_units == 7

    with providers_of(chain, 3, getMinimumBalanceForRentExemption=10**9) as (three, _):
        assert fees.costs(three.providers, PAIRS, cap_units=CAP) == costs


@pytest.mark.parametrize("price", [6 * 10**9, 10**15])
def test_one_of_two_providers_at_most_doubles_the_price_of_the_other(chain: World, price: int) -> None:
    dear = [{"slot": 1, "prioritizationFee": price}] * 150
    with providers_of(chain, 2, getRecentPrioritizationFees=dear) as (both, nodes):
        for _ in range(3):
            assert both.drafted(payment(PLAIN)).offer.terms["price"] == 2 * fees.PRICE_MIN
        lonely = world(chain.solana, [SILENT, nodes[-1].url])
        with contextlib.suppress(FeeTooHighError):
            assert lonely.drafted(payment(PLAIN)).offer.terms["price"] == price, "the cap alone bounds it"


def test_one_of_two_providers_at_most_doubles_the_compute_units_of_the_other(chain: World) -> None:
    with providers_of(chain, 1) as (one, _):
        honest = one.drafted(payment(5, pair=USDT_PAIR)).offer.terms["limit"]
    with providers_of(chain, 2, simulateTransaction=at(unitsConsumed=1_400_000)) as (both, _):
        assert both.drafted(payment(5, pair=USDT_PAIR)).offer.terms["limit"] <= 2 * honest
    with providers_of(chain, 2, simulateTransaction=at(unitsConsumed=1_400_001)) as (both, _):
        assert both.drafted(payment(5, pair=USDT_PAIR)).offer.terms["limit"] == honest


def test_no_lone_provider_lets_a_transfer_run_out_of_compute_units(chain: World) -> None:
    with providers_of(chain, 1, simulateTransaction=at(unitsConsumed=1)) as (one, _):
        for pair in (None, USDT_PAIR):
            draft, attempt = one.paid(payment(1_000_000, pair=pair))
            assert one.spender.fate(case(draft, attempt)).is_success
    with providers_of(chain, 1, simulateTransaction=at(unitsConsumed=1_400_000)) as (one, _):
        assert one.drafted(payment(PLAIN)).offer.terms["limit"] == 1_400_000


def test_each_expired_spend_doubles_the_price_of_the_next_as_far_as_the_cap_allows(chain: World) -> None:
    prices = [chain.drafted(payment(PLAIN), expired=expired).offer.terms["price"] for expired in (0, 1, 3, 10, 500)]
    assert prices == [fees.PRICE_MIN << doublings for doublings in (0, 1, 3, 10, 10)]

    cap = SIGNATURE + fees.COIN_UNITS * 5 * fees.PRICE_MIN // 10**6
    capped = chain.drafted(payment(PLAIN), cap=cap, expired=9)
    assert (capped.offer.terms["price"], capped.offer.ceiling_units <= cap) == (4 * fees.PRICE_MIN, True)
    with pytest.raises(FeeTooHighError):
        chain.drafted(payment(PLAIN), cap=SIGNATURE, expired=2)

    chain.solana.give(OURS.address, SOL)
    chain.solana.mine(2)
    step = chain.treasurer.step(replace(lying(SOL, None), expired=2), HOT_KEY, cap_units=CAP)
    assert isinstance(step, Sweep)
    assert step.draft.offer.terms["price"] == 4 * fees.PRICE_MIN


@pytest.mark.parametrize("providers", [2, 3])
def test_no_spend_refers_to_a_block_that_one_provider_alone_has(chain: World, providers: int) -> None:
    """It would expire, and the next one too, without a word."""

    def invent(truth: Any, _params: list[Any]) -> Any:
        return {"context": {"slot": 1}, "value": truth["value"] | {"blockhash": "1" * 32}}

    def take(truth: Any, params: list[Any]) -> Any:
        return truth | {"value": truth["value"] or params[0] == "1" * 32}

    with providers_of(chain, providers, getLatestBlockhash=invent, isBlockhashValid=take) as (some, _):
        if providers == 2:
            with pytest.raises(DisagreementError, match="one provider alone takes"):
                some.drafted(payment(PLAIN))
        else:
            claim = some.drafted(payment(PLAIN)).claim
            assert isinstance(claim, Window)
            assert claim.reference != "1" * 32
    with providers_of(chain, providers) as (some, nodes):
        nodes[-1].lag(3)
        assert some.drafted(payment(PLAIN))
