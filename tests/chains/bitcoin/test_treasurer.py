"""Joining coins on a real bitcoind: when, which, and what becomes of them."""

from __future__ import annotations

import pytest

from chains.bitcoin.transactions import read
from chains.spending import Coins, Draft, FateKind, FeeTooHighError, Sending, Sweep, Wait
from tests.chains.bitcoin.spends.samples import CAP, COIN, DEPOSIT_KEYS, WALLET, coin
from tests.chains.bitcoin.spends.world import World, world
from tests.peers.bitcoind.hand_mined import HandMined


def joined(world: World) -> Draft:
    step = world.treasurer.join(world.coins, WALLET, cap_units=CAP)
    assert isinstance(step, Sweep)
    return step.draft


def test_the_smallest_are_joined_into_one_at_the_hot_wallet(alone: World) -> None:
    small = alone.fund(*range(20_000, 20_120), keys=(WALLET, *DEPOSIT_KEYS))
    alone.fund(COIN, COIN)
    draft = joined(alone)
    assert isinstance(draft.claim, Coins)
    attempt = alone.sign(draft)

    assert sorted(one.units for one in draft.claim.coins) == [*range(20_000, 20_100)]
    assert set(draft.claim.coins) < set(small)
    [output] = draft.intent.outputs
    assert (draft.intent.wallet, output.recipient) == (WALLET, WALLET.address)
    assert output.units == sum(range(20_000, 20_100)) - draft.offer.ceiling_units
    assert [one.units for one in read(attempt.raw).outputs] == [output.units]
    assert alone.accepted(attempt)["allowed"]
    assert alone.spender.send(attempt.raw) is Sending.TAKEN
    fate = alone.fate(draft, attempt, seen={attempt.txid: alone.node.mine()})
    assert (fate.kind, fate.fee_units) == (FateKind.INCLUDED, draft.offer.ceiling_units)
    assert sum(each.units for each in fate.movements) == -fate.fee_units


def test_few_coins_stay_as_they_are(alone: World) -> None:
    alone.fund(*[100_000] * 50)
    assert alone.treasurer.join(alone.coins, WALLET, cap_units=CAP) == Wait(reason="dear", cost_units=42 * 5)

    alone.fund(100_000)
    assert isinstance(alone.treasurer.join(alone.coins, WALLET, cap_units=CAP), Sweep)


def test_while_fees_are_high_nothing_is_joined_and_the_cost_is_reported(alone: World) -> None:
    alone.fund(*[100_000] * 60)
    for rate, kind in ((0.00005, Sweep), (0.00006, Wait)):
        alone.providers[0].lies["estimatesmartfee"] = {"feerate": rate, "blocks": 3}
        step = alone.treasurer.join(alone.coins, WALLET, cap_units=CAP)
        assert isinstance(step, kind)
    assert isinstance(step, Wait)
    assert (step.reason, step.cost_units) == ("dear", 4_107 * 6)
    with pytest.raises(FeeTooHighError):
        alone.treasurer.join(alone.coins, WALLET, cap_units=5)


def test_the_operator_says_up_to_which_rate_and_may_say_never(node: HandMined) -> None:
    with world(node, join_sat_vb=0) as never, world(node, join_sat_vb=4) as frugal:
        coins = never.fund(*[100_000] * 60)
        for each in (never, frugal):
            assert isinstance(each.treasurer.join(coins, WALLET, cap_units=CAP), Wait)
        frugal.providers[0].lies["estimatesmartfee"] = {"feerate": 0.00004, "blocks": 3}
        assert isinstance(frugal.treasurer.join(coins, WALLET, cap_units=CAP), Sweep)


def test_a_coin_below_its_own_fee_is_not_joined_and_does_not_count(alone: World) -> None:
    alone.fund(*[340] * 60)
    worth = alone.fund(*[10_000] * 50)
    assert isinstance(alone.treasurer.join(alone.coins, WALLET, cap_units=CAP), Wait)
    # After the fee, the joined coin would be too small to be worth making.
    assert isinstance(alone.treasurer.join(alone.fund(*[345] * 60), WALLET, cap_units=CAP), Wait)
    alone.coins = alone.coins[:110]

    worth += alone.fund(10_000)
    draft = joined(alone)
    assert isinstance(draft.claim, Coins)
    assert set(draft.claim.coins) == set(worth)


def test_costly_joins_are_not_made_and_of_too_many_coins_the_largest_are_joined(alone: World) -> None:
    # At 5 satoshi for a byte an input costs 340: a twentieth of 6,800.
    costly = [coin(number, 6_799) for number in range(1, 201)]
    assert isinstance(alone.treasurer.join(costly, WALLET, cap_units=CAP), Wait)

    many = [coin(number, 10_000 + number) for number in range(201, 1_501)]
    step = alone.treasurer.join([*costly, *many], WALLET, cap_units=CAP)
    assert isinstance(step, Sweep)
    assert isinstance(step.draft.claim, Coins)
    assert set(step.draft.claim.coins) == set(many[-100:])
