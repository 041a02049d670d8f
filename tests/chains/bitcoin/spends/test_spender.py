"""Drafts, signatures and replacements that a real bitcoind accepts, mines or refuses."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from chains.base import ProviderError
from chains.bitcoin.scripts import script_of
from chains.bitcoin.spends import selection, spender
from chains.bitcoin.spends.fees import costs
from chains.bitcoin.spends.sizes import dust_units
from chains.bitcoin.transactions import Tx, read
from chains.spending import (
    Coins,
    CoinsTooSmallError,
    Draft,
    FeeTooHighError,
    InsufficientCoinError,
    Intent,
    KeyRef,
    Output,
    Purse,
    Scanned,
    Sending,
    SpendRefusedError,
    UnderfundedError,
)
from core.addresses.addresses import smallest_units
from tests.chains.bitcoin.spends.samples import (
    COIN,
    DEPOSIT_KEYS,
    KEYS,
    NETWORK,
    RECIPIENTS,
    WALLET,
    intent,
)
from tests.chains.bitcoin.spends.world import World, deeper
from tests.peers.bitcoind.hand_mined import BUYER_ADDRESS, signed_by_buyer
from tests.peers.json_rpc_node import Refusal
from tests.peers.lying_rpc import DOWN, HTML


def claimed(draft: Draft) -> Coins:
    assert isinstance(draft.claim, Coins)
    return draft.claim


def made(world: World, draft: Draft) -> Tx:
    return read(world.sign(draft).raw)


def fee_of(draft: Draft, tx: Tx) -> int:
    return sum(one.units for one in claimed(draft).coins) - sum(one.units for one in tx.outputs)


def test_a_lone_provider_decides_no_lock_height_and_a_bump_mends_an_earlier_one(alone: World) -> None:
    alone.fund(COIN)
    alone.providers[0].lies["getblockcount"] = 2_000_000
    scanned = Scanned(height=alone.node.height(), time=datetime.now(UTC))
    purse = Purse(coins=tuple(alone.coins), scanned=scanned)

    draft = alone.spender.draft(intent(COIN // 2), purse, cap_units=100)
    assert draft.offer.terms["lock_height"] == scanned.height

    wrong = alone.draft(intent(COIN // 2))
    assert wrong.offer.terms["lock_height"] == 2_000_000, "before the first scan"
    mended = alone.spender.dearer(wrong, Purse(scanned=scanned), cap_units=100)
    assert mended.offer.terms["lock_height"] == scanned.height


def test_every_kind_of_recipient_is_paid_in_one_transaction_that_the_node_accepts(alone: World) -> None:
    alone.fund(COIN, 2 * COIN, keys=(WALLET, *DEPOSIT_KEYS))
    outputs = tuple(Output(recipient=to, units=10_000 + place) for place, to in enumerate(RECIPIENTS))
    wanted = Intent(wallet=WALLET, pair=None, outputs=outputs)
    draft = alone.draft(wanted)
    attempt = alone.sign(draft)
    accepted, tx = alone.accepted(attempt), read(attempt.raw)

    assert (accepted["allowed"], accepted["txid"]) == (True, attempt.txid)
    assert [(one.script, one.units) for one in tx.outputs[: len(outputs)]] == [
        (script_of(each.recipient, "regtest"), each.units) for each in outputs
    ]
    assert {one.script for one in tx.outputs[len(outputs) :]} == {script_of(WALLET.address, "regtest")}
    assert {one.sequence for one in tx.inputs} == {0xFFFFFFFD}
    assert tx.lock_time == alone.node.height()
    # The fee for the real size is the rate, up to the varying length of signatures.
    terms = draft.offer.terms
    assert fee_of(draft, tx) == terms["fee_units"] == draft.offer.ceiling_units
    assert 0 <= terms["fee_units"] - accepted["vsize"] * 5 <= 5 * len(tx.inputs)
    assert alone.spender.send(attempt.raw) is Sending.TAKEN
    alone.node.mine()
    assert alone.node.waiting() == []


def test_a_hundred_payouts_leave_in_one_transaction_of_coins_that_lie_at_many_addresses(alone: World) -> None:
    alone.fund(*[COIN // 20] * 40, keys=(WALLET, *DEPOSIT_KEYS))
    draft = alone.draft(intent(*range(1_000_000, 1_000_100)))
    attempt = alone.sign(draft)

    assert alone.accepted(attempt)["allowed"]
    assert [one.units for one in read(attempt.raw).outputs[:100]] == [*range(1_000_000, 1_000_100)]
    with pytest.raises(ValueError, match="1 to 100 outputs"):
        alone.draft(intent(*[1_000] * 101))
    with pytest.raises(ValueError, match="1 to 100 outputs"):
        alone.draft(intent())


def test_the_largest_that_is_ever_made_is_passed_on(alone: World) -> None:
    for _ in range(2):
        alone.fund(*[100_000] * 100, keys=(WALLET, *DEPOSIT_KEYS))
    # Where nodes pass on version 3, a batch has less room.
    alone.providers[0].lies["getmempoolinfo"] = lambda truth, _params: {**truth, "truc_policy": "reject"}
    draft = alone.draft(intent(*[190_000] * 100, to=RECIPIENTS[3]))

    assert len(claimed(draft).coins) > 190
    assert alone.accepted(alone.sign(draft))["allowed"]


def test_the_same_draft_gives_the_same_bytes_in_whatever_order_its_coins_were_read(alone: World) -> None:
    alone.fund(COIN, COIN, COIN, keys=tuple(DEPOSIT_KEYS))
    draft = alone.draft(intent(5 * COIN // 2))
    shuffled = [
        replace(draft, claim=Coins(coins=order), plan=b"") for order in itertools.permutations(claimed(draft).coins)
    ]

    assert len(shuffled) == 6
    assert {alone.sign(each) for each in shuffled} == {alone.sign(draft)}


def test_a_coin_is_signed_for_by_its_own_addresss_key_alone(alone: World) -> None:
    alone.fund(COIN)
    draft = alone.draft(intent(1_000_000))
    strange = KeyRef(address=DEPOSIT_KEYS[0].address, ordinal=1)
    foreign = replace(claimed(draft).coins[0], key=strange)
    older = replace(claimed(draft).coins[0], key=KeyRef(address=RECIPIENTS[0], ordinal=None))

    for one, problem in ((foreign, "no such key"), (older, "no address of a key of ours")):
        with pytest.raises(ValueError, match=problem):
            alone.sign(replace(draft, claim=Coins(coins=(one,))))
    with pytest.raises(ValueError, match="no number"):
        alone.spender.sign(draft, counter=1, keys=KEYS.keyring())


@pytest.mark.parametrize(
    "terms", [{"fee_units": 1}, {"change_units": 1}, {"lock_height": 500_000_000}, {"lock_height": -1}]
)
def test_a_draft_that_differs_from_its_terms_is_not_signed(alone: World, terms: dict[str, int]) -> None:
    alone.fund(COIN)
    draft = alone.draft(intent(1_000_000))

    alone.sign(draft)
    with pytest.raises(ValueError, match=r"units, where|no height"):
        alone.sign(deeper(draft, **terms))
    with pytest.raises(ValueError, match="units, where"):
        alone.sign(replace(draft, offer=replace(draft.offer, ceiling_units=draft.offer.ceiling_units - 1)))
    [one] = claimed(draft).coins
    for coins, problem in (((one, one), "twice"), ((), "none"), ((replace(one, units=2 * COIN),), "units, where")):
        with pytest.raises(ValueError, match=problem):
            alone.sign(replace(draft, claim=Coins(coins=coins)))


@pytest.mark.parametrize("to", RECIPIENTS)
def test_dust_is_refused_as_the_node_refuses_it(alone: World, to: str) -> None:
    alone.fund(COIN)
    least = dust_units(script_of(to, "regtest"))
    assert smallest_units(NETWORK, to) == least
    wanted = alone.draft(intent(least, to=to))

    assert alone.accepted(alone.sign(wanted))["allowed"]
    with pytest.raises(SpendRefusedError, match=to):
        alone.draft(intent(10_000, least - 1, to=to))
    fee = wanted.offer.terms["fee_units"]
    below = replace(
        deeper(wanted, fee_units=fee + 1),
        intent=intent(least - 1, to=to),
        offer=replace(deeper(wanted, fee_units=fee + 1).offer, ceiling_units=fee + 1),
    )
    assert alone.accepted(alone.sign(below))["reject-reason"].startswith("dust")


def test_a_choice_that_offers_more_than_the_cap_is_no_draft(alone: World, monkeypatch: pytest.MonkeyPatch) -> None:
    alone.fund(COIN)
    wrong = selection.Choice(coins=tuple(alone.coins), fee_units=COIN - 1_000_000, change_units=0, change_parts=0)
    monkeypatch.setattr(selection, "choose", lambda *_args, **_named: wrong)

    with pytest.raises(ValueError, match="99000000 satoshi for"):
        alone.draft(intent(1_000_000))
    monkeypatch.undo()
    assert alone.draft(intent(1_000_000))
    # Nor is one that no node would pass on.
    monkeypatch.setattr(spender, "VBYTES_MAX", 100)
    with pytest.raises(ValueError, match="virtual bytes"):
        alone.draft(intent(1_000_000))


def test_a_recipient_of_another_chain_is_paid_nothing(alone: World) -> None:
    alone.fund(COIN)
    for to in ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "1BoatSLRHtKNngkdXEeobR76b53LETtpyT"):
        with pytest.raises(ValueError, match="no address of this chain"):
            alone.draft(intent(10_000, to=to))


def test_change_is_split_until_the_wallet_has_enough_coins(alone: World) -> None:
    alone.fund(COIN)
    first = alone.draft(intent(1_000_000))
    alone.fund(*[COIN] * 9)
    later = alone.draft(intent(1_000_000))

    assert first.offer.terms["change_parts"] == 8
    assert later.offer.terms["change_parts"] == 1
    assert alone.accepted(alone.sign(first))["allowed"]


def test_a_payout_beyond_the_coins_waits(alone: World) -> None:
    alone.fund(1_000_000)

    with pytest.raises(InsufficientCoinError, match="lack"):
        alone.draft(intent(999_999))
    assert alone.draft(intent(990_000))


# Version 3 ----------------------------------------------------------------------------------------------------


def test_a_recipients_large_child_does_not_pin_a_shared_payout(alone: World) -> None:
    alone.fund(COIN)
    outputs = (Output(recipient=BUYER_ADDRESS, units=COIN // 2), Output(recipient=RECIPIENTS[2], units=10_000))
    draft = alone.draft(Intent(wallet=WALLET, pair=None, outputs=outputs))
    assert_not_pinned(alone, draft)
    dearer = alone.dearer(draft)
    assert alone.spender.send(alone.sign(dearer).raw) is Sending.TAKEN
    assert dearer.offer.terms["version"] == 3


def assert_not_pinned(alone: World, draft: Draft) -> None:
    """Have the node take a draft's bytes, and no large child of its first output, the buyer's."""
    if "truc_policy" not in alone.node.ask("getmempoolinfo"):
        pytest.skip("this node enforces no rule of version 3")
    attempt = alone.sign(draft)
    assert read(attempt.raw).version == 3
    assert alone.spender.send(attempt.raw) is Sending.TAKEN
    coins = [(attempt.txid, 0, draft.intent.outputs[0].units)]
    for version, reason in ((1, "truc-spent-by-nontruc"), (3, "truc-child-toobig")):
        child = signed_by_buyer(coins, [(BUYER_ADDRESS, 100_000)] * 40, version=version).serialize()
        assert read(child).vsize > 1_000
        (answer,) = alone.node.ask("testmempoolaccept", [child.hex()], 0)
        assert (answer["allowed"], answer["reject-reason"]) == (False, reason)


def test_a_batch_takes_no_more_coins_than_version_3_has_room_for(alone: World) -> None:
    alone.fund(*[100_000] * 250)

    def paying(*units: int) -> Intent:
        outputs = tuple(Output(recipient=BUYER_ADDRESS, units=each) for each in units)
        return Intent(wallet=WALLET, pair=None, outputs=outputs)

    with pytest.raises(CoinsTooSmallError, match="more than one transaction"):
        alone.draft(paying(10_000_000, 13_000_000))
    # Its halves leave alone.
    assert alone.draft(paying(13_000_000)).offer.terms["version"] == 3
    full = alone.draft(paying(10_000_000, 3_200_000))
    assert len(claimed(full).coins) > 130
    assert_not_pinned(alone, full)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("getnetworkinfo", lambda truth, _params: {**truth, "version": 279_900}),
        ("getnetworkinfo", Refusal(-32601, "Method not found")),
        ("getmempoolinfo", lambda truth, _params: {**truth, "truc_policy": "reject"}),
    ],
)
def test_where_most_nodes_do_not_pass_on_version_3_nothing_is_sent_in_it(
    trio: World, method: str, answer: object
) -> None:
    trio.fund(COIN)
    before = trio.draft(intent(1_000_000))
    for peer in trio.providers[:2]:
        peer.lies[method] = answer
    draft = trio.dearer(before)

    assert (before.offer.terms["version"], draft.offer.terms["version"]) == (3, 2)
    attempt = trio.sign(draft)
    assert read(attempt.raw).version == 2
    assert trio.spender.send(trio.sign(before).raw) is Sending.TAKEN
    assert trio.spender.send(attempt.raw) is Sending.TAKEN


def test_alone_a_payout_that_is_too_large_for_version_3_is_sent_in_the_older_one(alone: World) -> None:
    alone.fund(*[100_000] * 250)
    draft = alone.draft(intent(23_000_000))
    attempt = alone.sign(draft)

    assert len(claimed(draft).coins) > 200
    assert (read(attempt.raw).version, alone.accepted(attempt)["allowed"]) == (2, True)


# Replacements -------------------------------------------------------------------------------------------------


def bumped(world: World, draft: Draft) -> Draft | None:
    """Have the node take a draft's bytes; return what is offered next, None where the cap is reached."""
    attempt = world.sign(draft)
    assert world.spender.send(attempt.raw) is Sending.TAKEN
    assert world.node.waiting() == [attempt.txid]
    try:
        return world.dearer(draft)
    except FeeTooHighError:
        return None


def test_replacements_take_each_others_place_until_the_cap_and_pay_out_of_the_change(alone: World) -> None:
    alone.fund(COIN)
    drafts = [alone.draft(intent(1_000_000))]
    while (draft := bumped(alone, drafts[-1])) is not None:
        drafts.append(draft)
    rates = [draft.offer.terms["rate"] for draft in drafts]

    assert rates[0] == 5_000
    assert rates[-1] == 300_000
    assert len(rates) > 10
    # A quarter more each time, and locked as the first was.
    assert all(
        later > earlier and later >= min(300_000, earlier * 5 // 4) for earlier, later in itertools.pairwise(rates)
    )
    assert {draft.offer.terms["lock_height"] for draft in drafts} == {alone.node.height()}
    assert {claimed(draft).outpoints for draft in drafts} == {claimed(drafts[0]).outpoints}


def test_a_replacement_drops_its_change_and_then_takes_a_further_coin(alone: World) -> None:
    (first,) = alone.fund(1_002_000)
    (further,) = alone.fund(500_000)
    alone.coins = [first]
    before = alone.draft(intent(1_000_000))
    assert before.offer.terms["change_parts"] == 1
    assert alone.spender.send(alone.sign(before).raw) is Sending.TAKEN

    dropped = before
    while dropped.offer.terms["change_parts"]:
        before, dropped = dropped, alone.dearer(dropped)
        assert alone.spender.send(alone.sign(dropped).raw) is Sending.TAKEN
    assert claimed(dropped).coins == (first,)
    richer = dropped
    while claimed(richer).coins == (first,):
        richer = alone.dearer(richer, further)
        assert alone.spender.send(alone.sign(richer).raw) is Sending.TAKEN
    assert set(claimed(richer).coins) == {first, further}
    assert richer.offer.terms["change_units"] > 400_000
    assert alone.node.waiting() == [alone.sign(richer).txid]


def pool(**figures: float) -> Callable[[Any, list[Any]], Any]:
    """Return a lie about a pool's figures, in whole coins for a thousand bytes."""
    return lambda truth, _params: {**truth, **figures}


def test_a_replacement_pays_the_nodes_rate_for_its_bytes(trio: World) -> None:
    trio.fund(COIN)
    before = trio.draft(intent(1_000_000))
    for peer, increment in zip(trio.providers, (0.0001, 0.0001, 0.9), strict=True):
        peer.lies["getmempoolinfo"] = pool(incrementalrelayfee=increment)
    after = trio.dearer(before)
    vbytes = read(trio.sign(after).raw).vsize

    assert after.offer.terms["rate"] == 15_000
    assert after.offer.terms["fee_units"] >= before.offer.terms["fee_units"] + 10 * vbytes
    with pytest.raises(FeeTooHighError, match="more than 14 satoshi"):
        trio.dearer(before, cap=14)


def test_one_nodes_rate_for_a_replacement_is_bounded_by_all(trio: World) -> None:
    trio.fund(COIN)
    before = trio.draft(intent(1_000_000))
    trio.dearer(before)
    trio.providers[0].lies["getmempoolinfo"] = pool(incrementalrelayfee=0.002)
    for peer in trio.providers[1:]:
        peer.failure = DOWN

    # Twice what all asked for before is less than a quarter more.
    assert trio.dearer(before).offer.terms["rate"] <= 7_000


def test_a_pool_that_fills_before_sending_raises_the_offer(alone: World) -> None:
    alone.fund(COIN)
    before = alone.draft(intent(1_000_000))
    alone.providers[0].lies["sendrawtransaction"] = Refusal(-26, "mempool min fee not met, 705 < 7050")
    assert alone.spender.send(alone.sign(before).raw) is Sending.UNDERPRICED

    alone.providers[0].lies["getmempoolinfo"] = pool(mempoolminfee=0.0005)
    assert alone.dearer(before).offer.terms["rate"] == 50_000


def test_what_nothing_is_left_to_pay_for_says_what_it_lacks(alone: World) -> None:
    alone.fund(1_000_700)
    before = alone.draft(intent(1_000_000))
    assert before.offer.terms["change_parts"] == 0

    with pytest.raises(UnderfundedError) as caught:
        alone.dearer(before)
    assert caught.value.missing_units == caught.value.offer.ceiling_units - 700 > 0


def test_an_original_mined_after_its_replacement_is_included(alone: World) -> None:
    alone.fund(COIN)
    before = alone.draft(intent(1_000_000))
    after = alone.dearer(before)
    original, replacement = alone.sign(before), alone.sign(after)
    for attempt in (original, replacement):
        assert alone.spender.send(attempt.raw) is Sending.TAKEN
    height = alone.include(original.raw)
    fate = alone.fate(after, replacement, original, seen={original.txid: height})

    assert (fate.txid, fate.height, fate.is_success) == (original.txid, height, True)
    assert fate.fee_units == before.offer.terms["fee_units"]
    assert alone.spender.send(original.raw) is Sending.TAKEN
    assert alone.spender.send(replacement.raw) is Sending.CLAIM_USED


# Rates ----------------------------------------------------------------------------------------------------------


def estimate(rate: float | None) -> object:
    return {"blocks": 3} if rate is None else {"feerate": rate, "blocks": 3}


@pytest.mark.parametrize(
    ("answer", "rate"),
    [
        ((None, None, None), 5_000),
        ((0.0001, 0.0002, 0.0003), 20_000),
        # One that asks for far too much, or for nothing, is one of three voices.
        ((0.0001, 0.0002, 0.9), 20_000),
        ((-1, 0.0002, 0.0003), 20_000),
        ((0.0001, 0.0001, 7), 10_000),
        # Never less than would be taken.
        ((0.000001, 0.000001, 0.000001), 1_000),
    ],
)
def test_the_median_of_the_nodes_rates_counts(trio: World, answer: tuple[float | None, ...], rate: int) -> None:
    trio.fund(COIN)
    for peer, each in zip(trio.providers, answer, strict=True):
        peer.lies["estimatesmartfee"] = estimate(each)

    assert trio.draft(intent(1_000_000)).offer.terms["rate"] == rate


def test_of_two_the_lower_counts_so_that_one_alone_burns_nothing(pair: World) -> None:
    pair.fund(COIN)
    pair.providers[0].lies["estimatesmartfee"] = estimate(0.5)

    assert pair.draft(intent(1_000_000)).offer.terms["rate"] == 5_000


def test_above_the_cap_it_waits(alone: World) -> None:
    alone.fund(COIN)
    alone.providers[0].lies["estimatesmartfee"] = estimate(0.00300001)
    with pytest.raises(FeeTooHighError, match="the cap is 300"):
        alone.draft(intent(1_000_000))

    alone.providers[0].lies["estimatesmartfee"] = estimate(0.003)
    assert alone.draft(intent(1_000_000)).offer.terms["rate"] == 300_000


NO_RATES = ("much", 1e300, "NaN", "sNaN", "Infinity", "1e999999", "-1e999999", "-1e9999999")


def test_an_invalid_rate_is_unknown_and_hides_no_other(pair: World) -> None:
    pair.fund(COIN)
    for lie in (HTML, 7, *({"feerate": rate} for rate in NO_RATES)):
        pair.providers[0].lies["estimatesmartfee"] = lie
        assert pair.draft(intent(1_000_000)).offer.terms["rate"] == 5_000

    pair.providers[1].failure = DOWN
    for lie in (HTML, DOWN, 7, *({"feerate": rate} for rate in NO_RATES)):
        pair.providers[0].lies["estimatesmartfee"] = lie
        with pytest.raises(ProviderError):
            pair.draft(intent(1_000_000))


def test_a_single_providers_rate_is_used_within_bounds(alone: World) -> None:
    alone.fund(COIN)
    lies = alone.providers[0].lies
    # An estimate of zero is no estimate; a rate below the node's minimum is raised to it.
    for feerate, figures, rate in (
        (-1, {}, 5_000),
        (0, {}, 5_000),
        (0.00002, {"mempoolminfee": 0.00003}, 3_000),
        (0.00002, {"minrelaytxfee": 0.00004}, 4_000),
        (None, {"minrelaytxfee": 0.00007}, 7_000),
    ):
        lies["estimatesmartfee"] = estimate(feerate)
        lies["getmempoolinfo"] = pool(**figures)
        assert alone.draft(intent(1_000_000)).offer.terms["rate"] == rate

    # The rate is the estimate for inclusion within three blocks.
    lies["estimatesmartfee"] = lambda _truth, params: estimate(0.00012 if params == [3] else 0.9)
    assert alone.draft(intent(1_000_000)).offer.terms["rate"] == 12_000

    # A step is a satoshi for a virtual byte at the least, whatever a node says.
    lies["estimatesmartfee"], lies["getmempoolinfo"] = estimate(0.00001), pool(incrementalrelayfee=0)
    before = alone.draft(intent(1_000_000))
    assert [alone.dearer(before).offer.terms["rate"], before.offer.terms["rate"]] == [2_000, 1_000]


def test_a_provider_that_is_ahead_of_its_chain_does_not_lock_a_transaction_away(pair: World) -> None:
    pair.fund(COIN)
    pair.providers[1].lies["getblockcount"] = 400_000_000

    assert pair.draft(intent(1_000_000)).offer.terms["lock_height"] == pair.node.height()


def test_costs_are_those_of_a_payout_that_leaves_alone_and_of_one_more_coin(alone: World) -> None:
    fees = costs(alone.spender.providers, NETWORK, cap_units=300)
    alone.fund(1_000_000)
    draft = alone.draft(intent(990_000, to=RECIPIENTS[3]))

    assert (fees.payout_units, fees.sweep_units) == (153 * 5, 68 * 5)
    assert draft.offer.terms["fee_units"] == fees.payout_units
    assert costs(alone.spender.providers, NETWORK, cap_units=2).payout_units == 153 * 2
