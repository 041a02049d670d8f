"""Balances of deposit addresses are swept: the hot wallet signs too and pays, and the rent comes home."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from solders.pubkey import Pubkey

from chains.solana import programs, transactions
from chains.spending import InsufficientCoinError, Offer, SpendRefusedError, Sweep, Wait
from core.catalogue.catalogue import Pair
from devstack.solana.programs import holding_bytes
from tests.chains.solana.spends.world import (
    CAP,
    HOLDING,
    HOT_KEY,
    KEYRING,
    OURS,
    PLAIN,
    SIGNATURE,
    USDT_PAIR,
    World,
    lying,
    moved,
)
from tests.peers.solana.chain import SOL, USDT, holding


def test_a_token_leaves_to_the_last_unit_and_its_account_is_closed(chain: World) -> None:
    chain.solana.give_tokens(OURS.address, 9_000)
    chain.solana.mine(2)

    draft, attempt, fate = chain.swept(9_000, USDT_PAIR)

    signed = transactions.read(attempt.raw)
    assert signed is not None
    assert signed.signers == (HOT_KEY.address, OURS.address)
    assert fate.is_success
    assert fate.fee_units <= draft.offer.ceiling_units
    assert chain.solana.balance(holding(OURS.address)) == 0
    assert moved(fate)[HOT_KEY.address, "USDT"] == 9_000
    assert moved(fate)[OURS.address, "USDT"] == -9_000


def test_rent_home_is_no_topup(chain: World) -> None:
    chain.solana.give_tokens(OURS.address, 9_000)
    chain.solana.mine(2)
    before = chain.solana.balance(HOT_KEY.address)

    draft, _, fate = chain.swept(9_000, USDT_PAIR)

    gained = chain.solana.balance(HOT_KEY.address) - before
    assert HOLDING - 3 * SIGNATURE < gained < HOLDING - 2 * SIGNATURE
    # It is a fee below nothing, so that the books of the hot wallet hold without a top-up.
    assert fate.fee_units == -gained
    assert draft.offer.gain_units == HOLDING
    assert moved(fate)[HOT_KEY.address, "SOL"] == gained
    assert (OURS.address, "SOL") not in moved(fate)


def test_lamports_upon_a_token_account_come_home_too(chain: World) -> None:
    chain.solana.give_tokens(OURS.address, 9_000)
    chain.solana.give(holding(OURS.address), 77)
    chain.solana.mine(2)
    before = chain.solana.balance(HOT_KEY.address)

    _, _, fate = chain.swept(9_000, USDT_PAIR)

    assert chain.solana.balance(HOT_KEY.address) - before == -fate.fee_units


def test_the_first_sweep_makes_the_hot_wallets_account(chain: World) -> None:
    chain.solana.act("account", address=holding(HOT_KEY.address), lamports=0, owner=programs.SYSTEM)
    chain.solana.give_tokens(OURS.address, 9_000)
    chain.solana.mine(2)

    draft, _, fate = chain.swept(9_000, USDT_PAIR)

    assert fate.is_success
    assert 0 < fate.fee_units <= draft.offer.ceiling_units
    assert chain.solana.token_balance(HOT_KEY.address) == 9_000


def test_more_than_the_rows_know_leaves_the_account_open(chain: World) -> None:
    chain.solana.give_tokens(OURS.address, 9_001)
    chain.solana.mine(2)

    draft, _, fate = chain.swept(9_000, USDT_PAIR)

    assert fate.is_success
    assert draft.offer.gain_units == 0
    assert chain.solana.token_balance(OURS.address) == 1
    assert fate.fee_units > 2 * SIGNATURE


def test_a_unit_that_comes_between_costs_a_fee_and_moves_nothing(chain: World) -> None:
    chain.solana.give_tokens(OURS.address, 9_000)
    chain.solana.mine(2)
    step = chain.treasurer.step(lying(9_000, USDT_PAIR), HOT_KEY, cap_units=CAP)
    assert isinstance(step, Sweep)
    attempt = chain.spender.sign(step.draft, counter=None, keys=KEYRING)
    chain.solana.send(attempt.raw)
    chain.solana.give_tokens(OURS.address, 1)
    chain.solana.settle()

    assert chain.solana.token_balance(OURS.address) == 9_001
    assert chain.swept(9_001, USDT_PAIR)[2].is_success


def test_sol_leaves_to_exactly_nothing_and_the_hot_wallet_pays(chain: World) -> None:
    chain.solana.give(OURS.address, 3 * SOL)
    chain.solana.mine(2)
    before = chain.solana.balance(HOT_KEY.address)

    draft, _, fate = chain.swept(3 * SOL, None)

    assert fate.is_success
    assert chain.solana.balance(OURS.address) == 0
    assert 2 * SIGNATURE < fate.fee_units <= draft.offer.ceiling_units
    assert chain.solana.balance(HOT_KEY.address) == before + 3 * SOL - fate.fee_units
    assert moved(fate) == {
        (OURS.address, "SOL"): -3 * SOL,
        (HOT_KEY.address, "SOL"): 3 * SOL - fate.fee_units,
    }


def test_a_balance_missing_on_the_chain_is_not_swept(chain: World) -> None:
    chain.solana.give_tokens(OURS.address, 9)
    chain.solana.give(OURS.address, SOL)
    chain.solana.mine(2)

    for units, pair in ((10, USDT_PAIR), (SOL + 1, None), (-1, None), (0, USDT_PAIR)):
        assert chain.treasurer.step(lying(units, pair), HOT_KEY, cap_units=CAP) == Wait(reason="short")


@pytest.mark.parametrize("pair", [USDT_PAIR, None], ids=["USDT", "SOL"])
def test_an_address_without_an_account_holds_nothing(chain: World, pair: Pair | None) -> None:
    assert chain.treasurer.step(lying(1, pair), HOT_KEY, cap_units=CAP) == Wait(reason="short")


@pytest.mark.parametrize(
    ("owner", "mint", "program", "size"),
    [
        (HOT_KEY.address, USDT, programs.TOKEN, 165),
        (OURS.address, OURS.address, programs.TOKEN, 165),
        (OURS.address, USDT, programs.TOKEN_2022, 165),
        (OURS.address, USDT, programs.TOKEN, 72),
    ],
)
def test_an_account_that_is_not_the_owners_token_account_holds_nothing(
    chain: World, owner: str, mint: str, program: str, size: int
) -> None:
    data = holding_bytes(Pubkey.from_string(mint), Pubkey.from_string(owner), 9)[:size]
    text = base64.b64encode(data).decode()
    chain.solana.act("account", address=holding(OURS.address), lamports=HOLDING, owner=program, data=text)
    chain.solana.mine(2)

    assert chain.treasurer.step(lying(9, USDT_PAIR), HOT_KEY, cap_units=CAP) == Wait(reason="short")


@pytest.mark.parametrize("dust", [1, PLAIN - 1])
def test_dust_that_strangers_send_keeps_no_sol_at_its_address(chain: World, dust: int) -> None:
    """An account may hold nothing or its rent: with more than the scan knows, the rent stays there."""
    chain.solana.give(OURS.address, SOL + dust)
    chain.solana.mine(2)

    _, _, fate = chain.swept(SOL, None)

    assert fate.is_success
    assert chain.solana.balance(OURS.address) == PLAIN + dust
    assert moved(fate)[OURS.address, "SOL"] == PLAIN - SOL
    # The rest leaves with the next sweep.
    _, _, fate = chain.swept(PLAIN + dust, None)
    assert chain.solana.balance(OURS.address) == 0


def test_the_rent_of_an_account_may_stay_and_nothing_less(chain: World) -> None:
    chain.solana.give(OURS.address, SOL)
    chain.solana.mine(2)

    step = chain.treasurer.step(lying(SOL - PLAIN, None), HOT_KEY, cap_units=CAP)
    assert isinstance(step, Sweep)
    assert step.draft.intent.units == SOL - PLAIN


@pytest.mark.parametrize("units", [1, PLAIN, PLAIN + 2 * SIGNATURE])
def test_no_more_than_the_rent_is_not_worth_a_sweep_while_dust_comes(chain: World, units: int) -> None:
    chain.solana.give(OURS.address, units + PLAIN // 2)
    chain.solana.mine(2)

    step = chain.treasurer.step(lying(units, None), HOT_KEY, cap_units=CAP)
    assert isinstance(step, Wait)
    assert step.reason == "dear"


def test_a_rest_that_is_not_worth_its_fee_stays(chain: World) -> None:
    chain.solana.act("price", floor=2 * 10**9)
    chain.solana.give(OURS.address, PLAIN)
    chain.solana.mine(150)

    assert isinstance(chain.treasurer.step(lying(PLAIN, None), HOT_KEY, cap_units=CAP), Sweep)
    rest = chain.treasurer.step(lying(PLAIN, None, is_rest=True), HOT_KEY, cap_units=CAP)
    assert isinstance(rest, Wait)
    assert (rest.reason, rest.cost_units > PLAIN) == ("dear", True)


def test_a_frozen_deposit_account_is_refused_by_its_trial(chain: World) -> None:
    chain.solana.give_tokens(OURS.address, 9)
    chain.solana.act("freeze", address=holding(OURS.address))
    chain.solana.mine(2)

    with pytest.raises(SpendRefusedError, match="frozen"):
        chain.treasurer.step(lying(9, USDT_PAIR), HOT_KEY, cap_units=CAP)


def test_a_hot_wallet_that_cannot_pay_waits(chain: World) -> None:
    chain.solana.give_tokens(OURS.address, 9)
    chain.solana.give(HOT_KEY.address, -10 * SOL + PLAIN + 2 * SIGNATURE)
    chain.solana.mine(2)

    with pytest.raises(InsufficientCoinError):
        chain.treasurer.step(lying(9, USDT_PAIR), HOT_KEY, cap_units=CAP)


def test_coin_promised_by_the_hot_wallet_pays_for_no_sweep(chain: World) -> None:
    chain.solana.give_tokens(OURS.address, 9)
    chain.solana.mine(2)
    promised = replace(lying(9, USDT_PAIR), hot_promised_units=10 * SOL - PLAIN - HOLDING)

    with pytest.raises(InsufficientCoinError, match="lamports and needs"):
        chain.treasurer.step(promised, HOT_KEY, cap_units=CAP)
    less = replace(promised, hot_promised_units=9 * SOL)
    assert isinstance(chain.treasurer.step(less, HOT_KEY, cap_units=CAP), Sweep)


def test_a_sweep_names_its_payer(chain: World) -> None:
    chain.solana.give_tokens(OURS.address, 9)
    chain.solana.mine(2)
    step = chain.treasurer.step(lying(9, USDT_PAIR), HOT_KEY, cap_units=CAP)

    assert isinstance(step, Sweep)
    assert step.draft.intent.payer == HOT_KEY
    alone = replace(step.draft, intent=replace(step.draft.intent, payer=None))
    with pytest.raises(ValueError, match="message of a draft"):
        chain.spender.sign(alone, counter=None, keys=KEYRING)


def test_a_higher_offer_needs_no_further_funds(chain: World) -> None:
    offer = Offer(ceiling_units=7, terms={})

    assert chain.treasurer.relief(OURS, HOT_KEY, offer=offer, missing_units=1) == Wait(reason="short", cost_units=7)
