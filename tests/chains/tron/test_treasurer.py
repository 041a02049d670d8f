"""Balances of deposit addresses are swept: a token after the TRX for its fee, TRX less its own fee."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from chains.base import ProviderError
from chains.net.rest import RestNode
from chains.spending import Fund, Lying, Offer, Purse, Scanned, Sweep, Wait
from chains.tron import nodes
from chains.tron.spends.drafts import AHEAD_MAX, LIFE
from core.catalogue.catalogue import Pair
from tests.chains.tron.world import CAP, HOT_KEY, KEYRING, OURS, USDT_PAIR, World, case, payment
from tests.peers.tron.chain import TRX


def lying(units: int, pair: Pair | None, *, is_rest: bool = False) -> Lying:
    return Lying(key=OURS, pair=pair, units=units, is_rest=is_rest, height=1, block_hash="any")


def test_a_token_at_an_address_that_was_never_activated_is_funded_and_swept_to_the_last_unit(chain: World) -> None:
    chain.tron.send(chain.tron.token(OURS.address, 9 * TRX))
    chain.tron.mine()

    step = chain.treasurer.step(lying(9 * TRX, USDT_PAIR), HOT_KEY, cap_units=CAP)

    assert isinstance(step, Fund)
    assert (step.intent.wallet, step.intent.outputs[0].recipient) == (HOT_KEY, OURS.address)
    assert step.cost_units > step.intent.units + TRX
    sent_units = step.intent.units
    _, gas = chain.signed(step.intent)
    chain.spender.send(gas.raw)
    chain.tron.mine()

    step = chain.treasurer.step(lying(9 * TRX, USDT_PAIR), HOT_KEY, cap_units=CAP)

    assert isinstance(step, Sweep)
    assert sent_units == step.draft.offer.terms["fee_limit"], "the bytes of a day's first are free to whoever is there"
    attempt = chain.spender.sign(step.draft, counter=None, keys=KEYRING)
    chain.spender.send(attempt.raw)
    chain.tron.mine()
    fate = chain.spender.fate(case(step.draft, attempt))
    assert fate.is_success
    assert fate.fee_units <= step.draft.offer.ceiling_units
    assert chain.tron.token_balance(OURS.address) == 0


def test_a_balance_missing_on_the_chain_is_not_swept(chain: World) -> None:
    chain.tron.send(chain.tron.token(OURS.address, 9))
    chain.tron.mine()

    assert chain.treasurer.step(lying(10, USDT_PAIR), HOT_KEY, cap_units=CAP) == Wait(reason="short")


@pytest.mark.parametrize("pair", [USDT_PAIR, None], ids=["token", "coin"])
def test_no_draft_lives_longer_than_the_scan_says(chain: World, pair: Pair | None) -> None:
    chain.tron.send(chain.tron.transfer(OURS.address, 90 * TRX))
    chain.tron.send(chain.tron.token(OURS.address, 9 * TRX))
    chain.tron.mine(30)
    solid = nodes.solid(RestNode(chain.tron.url, timeout_s=5))
    for ago, is_late in ((timedelta(seconds=60), False), (AHEAD_MAX + timedelta(seconds=1), True)):
        scanned = Scanned(height=1, time=solid.time - ago)
        address = replace(lying(9 * TRX, pair), scanned=scanned)
        for drafted in (
            lambda address=address: chain.treasurer.step(address, HOT_KEY, cap_units=CAP).draft,
            lambda scanned=scanned: chain.spender.draft(payment(1, pair=pair), Purse(scanned=scanned), cap_units=CAP),
        ):
            if is_late:
                with pytest.raises(ProviderError, match="the scan is at"):
                    drafted()
            else:
                assert drafted().claim.ends_at == (scanned.time + LIFE).replace(microsecond=0)


def test_trx_leaves_less_the_bytes_that_it_takes(chain: World) -> None:
    chain.tron.send(chain.tron.transfer(OURS.address, 3 * TRX))
    chain.tron.mine()

    step = chain.treasurer.step(lying(3 * TRX, None), HOT_KEY, cap_units=CAP)

    assert isinstance(step, Sweep)
    (output,) = step.draft.intent.outputs
    assert output.units + step.draft.offer.ceiling_units == 3 * TRX
    assert 200_000 < step.draft.offer.ceiling_units < 350_000
    attempt = chain.spender.sign(step.draft, counter=None, keys=KEYRING)
    chain.spender.send(attempt.raw)
    chain.tron.mine()
    assert chain.spender.fate(case(step.draft, attempt)).is_success


def test_a_rest_that_is_not_worth_its_fee_stays(chain: World) -> None:
    chain.tron.send(chain.tron.transfer(OURS.address, 400_000))
    chain.tron.mine()

    assert isinstance(chain.treasurer.step(lying(400_000, None), HOT_KEY, cap_units=CAP), Sweep)
    rest = chain.treasurer.step(lying(400_000, None, is_rest=True), HOT_KEY, cap_units=CAP)
    assert isinstance(rest, Wait)
    assert (rest.reason, rest.cost_units > 200_000) == ("dear", True)


def test_a_higher_offer_needs_no_further_funds(chain: World) -> None:
    offer = Offer(ceiling_units=7, terms={})

    assert chain.treasurer.relief(OURS, HOT_KEY, offer=offer, missing_units=1) == Wait(reason="short", cost_units=7)


def test_who_has_staked_for_it_is_sent_no_trx_before_a_token_leaves(chain: World) -> None:
    chain.tron.send(chain.tron.token(OURS.address, 9 * TRX))
    chain.tron.give(OURS.address, 1)
    chain.tron.act("stake", address=OURS.address, energy=10**6)
    chain.tron.mine()

    step = chain.treasurer.step(lying(9 * TRX, USDT_PAIR), HOT_KEY, cap_units=CAP)

    assert isinstance(step, Sweep)
    attempt = chain.spender.sign(step.draft, counter=None, keys=KEYRING)
    chain.spender.send(attempt.raw)
    chain.tron.mine()
    fate = chain.spender.fate(case(step.draft, attempt))
    assert (fate.is_success, fate.fee_units) == (True, 0)
