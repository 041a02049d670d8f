"""One provider alone neither refuses a payout, nor ends one, nor chooses how coin is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chains.base import ProviderError
from chains.spending import FateKind, LoneRefusalError, SpendRefusedError
from tests.chains.ton.spends.world import (
    FRESH,
    HOT_KEY,
    JETTONS,
    LIFE_S,
    SILENT,
    THEIRS,
    USD,
    USDT,
    World,
    case,
    payment,
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


def test_a_payout_that_one_of_two_hides_waits(two: World) -> None:
    draft, attempt = two.sent(payment(TON))
    two.chain.settle()
    two.nodes[0].hide(THEIRS)
    assert two.spender.fate(case(draft, attempt)).kind is FateKind.WAITING
    two.nodes[0].be_honest()
    assert two.spender.fate(case(draft, attempt)).is_success


def test_a_provider_that_leaves_out_a_transaction_contradicts_itself(ton: World) -> None:
    draft, attempt = ton.sent(payment(TON))
    ton.chain.settle()
    ton.ton.give(HOT_KEY.address, 1)
    ton.chain.settle()
    ton.nodes[0].lies["getTransactions"] = lambda truth, _asked: truth[:1] + truth[2:]
    with pytest.raises(ProviderError, match="do not follow each other"):
        ton.spender.fate(case(draft, attempt))
