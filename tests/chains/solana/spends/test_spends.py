"""Transfers are tried, signed here, sent, and followed to their effect or their end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chains.base import ProviderError
from chains.family import DEPOSITS
from chains.solana import programs, transactions
from chains.spending import (
    FateKind,
    FeeTooHighError,
    InsufficientCoinError,
    KeyRef,
    Sending,
    SpendRefusedError,
    Window,
)
from core.catalogue.catalogue import Pair
from tests.chains.solana.spends.world import (
    CAP,
    DERIVER,
    HOLDING,
    HOT_KEY,
    KEYRING,
    OURS,
    PLAIN,
    SIGNATURE,
    THEIRS,
    USDT_PAIR,
    World,
    case,
    moved,
    payment,
)
from tests.peers.solana.chain import BUYER, SOL, USDT, holding

WIDE = "\U0001f9ff" * 120


@pytest.mark.parametrize("pair", [None, USDT_PAIR], ids=["SOL", "USDT"])
def test_a_payout_arrives_once_for_what_was_offered_at_most(chain: World, pair: Pair | None) -> None:
    draft, attempt = chain.signed(payment(2_000_000, pair=pair))

    assert chain.spender.fate(case(draft, attempt)).kind is FateKind.WAITING
    assert [chain.spender.send(attempt.raw) for _ in range(2)] == [Sending.TAKEN] * 2
    slot = chain.solana.mine()
    assert chain.spender.fate(case(draft, attempt)).kind is FateKind.WAITING, "its block is not final yet"
    assert chain.spender.send(attempt.raw) is Sending.TAKEN
    chain.solana.mine()
    fate = chain.spender.fate(case(draft, attempt))

    assert (fate.kind, fate.height, fate.txid, fate.is_success) == (FateKind.INCLUDED, slot, attempt.txid, True)
    assert fate.block_hash == chain.solana.block(slot)["blockhash"]
    assert SIGNATURE < fate.fee_units <= draft.offer.ceiling_units
    currency = "USDT" if pair else "SOL"
    changes = moved(fate)
    assert changes[THEIRS, currency] == 2_000_000
    assert changes[HOT_KEY.address, "SOL"] == -fate.fee_units - (0 if pair else 2_000_000)
    there = chain.solana.token_balance(THEIRS) if pair else chain.solana.balance(THEIRS)
    assert there == 2_000_000


def test_the_rent_of_a_new_token_account_is_part_of_the_fee_and_of_each_offer(chain: World) -> None:
    first, second = (chain.paid(payment(5, pair=USDT_PAIR)) for _ in range(2))

    fees = [chain.spender.fate(case(*each)).fee_units for each in (first, second)]
    assert HOLDING < fees[0] <= first[0].offer.ceiling_units
    assert fees[1] < HOLDING < second[0].offer.ceiling_units
    assert fees[0] - fees[1] >= HOLDING


def test_recipients_that_close_their_accounts_for_the_rent(chain: World) -> None:
    chain.solana.give_tokens(THEIRS, 1)
    draft, attempt = chain.signed(payment(5, pair=USDT_PAIR))
    # It is gone between the trial and the block, and with it the rent that was paid for it.
    chain.solana.act("account", address=holding(THEIRS), lamports=0, owner=programs.SYSTEM)
    assert chain.solana.token_balance(THEIRS) == 0
    chain.spender.send(attempt.raw)
    chain.solana.settle()

    fate = chain.spender.fate(case(draft, attempt))

    assert fate.is_success
    assert HOLDING < fate.fee_units <= draft.offer.ceiling_units


def test_a_memo_of_120_wide_letters_is_in_the_block(chain: World) -> None:
    for pair in (None, USDT_PAIR):
        draft, attempt = chain.paid(payment(1_000_000, pair=pair, memo=WIDE))

        assert chain.spender.fate(case(draft, attempt)).is_success
        signed = transactions.read(attempt.raw)
        assert signed is not None
        assert signed.body is not None
        assert signed.body.memo == WIDE


def test_signing_is_a_function_of_the_draft_alone(chain: World) -> None:
    draft, attempt = chain.signed(payment(1, pair=USDT_PAIR))

    assert chain.spender.sign(draft, counter=None, keys=KEYRING) == attempt
    with pytest.raises(ValueError, match="no number"):
        chain.spender.sign(draft, counter=1, keys=KEYRING)
    foreign = KeyRef(address=HOT_KEY.address, ordinal=5)
    with pytest.raises(ValueError, match="no such key"):
        chain.spender.sign(replace(draft, intent=replace(draft.intent, wallet=foreign)), counter=None, keys=KEYRING)


def test_no_message_is_signed_that_does_not_what_its_draft_says(chain: World) -> None:
    draft, _ = chain.signed(payment(5, pair=USDT_PAIR))
    body = transactions.read_message(draft.plan)
    assert body is not None
    others = [
        replace(body, units=6),
        replace(body, recipient=BUYER.address),
        replace(body, memo="1"),
        replace(body, mint=""),
        replace(body, decimals=7),
    ]
    plans = [transactions.message(other) for other in others]

    for plan in (*plans, b"", draft.plan[:-1]):
        with pytest.raises(ValueError, match="message of a draft"):
            chain.spender.sign(replace(draft, plan=plan), counter=None, keys=KEYRING)
    other_window = replace(draft, claim=Window(reference=holding(THEIRS), last_block=1))
    with pytest.raises(ValueError, match="message of a draft"):
        chain.spender.sign(other_window, counter=None, keys=KEYRING)


def test_two_payouts_of_the_same_have_two_ids(chain: World) -> None:
    ids = {chain.signed(payment(1_000_000))[1].txid for _ in range(5)}

    assert len(ids) == 5


def test_a_window_is_the_150_blocks_after_a_final_block(chain: World) -> None:
    claim = chain.drafted(payment(1_000_000)).claim

    assert isinstance(claim, Window)
    final = chain.solana.chain.blocks[-2]
    assert (claim.reference, claim.last_block) == (final.hash, final.height + 150)


def test_nothing_is_offered_more_for(chain: World) -> None:
    draft = chain.drafted(payment(1_000_000))

    assert chain.spender.dearer(draft, None, cap_units=CAP) is None  # type: ignore[arg-type]


def test_a_fresh_recipient_gets_its_rent_at_least(chain: World) -> None:
    with pytest.raises(SpendRefusedError, match=f"at least {PLAIN} lamports"):
        chain.drafted(payment(PLAIN - 1))

    chain.paid(payment(PLAIN))
    assert chain.spender.fate(case(*chain.paid(payment(1)))).is_success


def test_sol_to_a_mint_or_token_account(chain: World) -> None:
    chain.solana.give_tokens(THEIRS, 1)
    for to in (USDT, holding(THEIRS), programs.TOKEN):
        for pair in (None, USDT_PAIR):
            with pytest.raises(SpendRefusedError, match="an account of a program"):
                chain.drafted(payment(1_000_000, pair=pair, to=to))


def test_a_token_account_of_its_own_key_is_paid_nothing(chain: World) -> None:
    # Its address is on the curve, for it was made with a key.
    theirs = DERIVER.address(DEPOSITS, 78)
    chain.solana.act("account", address=theirs, lamports=HOLDING, owner=programs.TOKEN, data="")
    chain.solana.mine(2)
    for pair in (None, USDT_PAIR):
        with pytest.raises(SpendRefusedError, match="an account of a program"):
            chain.drafted(payment(1_000_000, pair=pair, to=theirs))


def test_no_wallet_pays_itself(chain: World) -> None:
    for pair in (None, USDT_PAIR):
        with pytest.raises(SpendRefusedError, match="to itself"):
            chain.drafted(payment(5, pair=pair, to=HOT_KEY.address))


def test_a_frozen_account_is_found_by_a_trial(chain: World) -> None:
    chain.solana.give_tokens(THEIRS, 1)
    chain.solana.act("freeze", address=holding(THEIRS))
    chain.solana.mine(2)

    with pytest.raises(SpendRefusedError, match="frozen"):
        chain.drafted(payment(5, pair=USDT_PAIR))
    assert chain.spender.refuses(payment(5, pair=USDT_PAIR))
    neutral = payment(1, pair=USDT_PAIR, to=OURS.address)
    assert not chain.spender.refuses(neutral)

    chain.solana.act("freeze", address=holding(HOT_KEY.address))
    chain.solana.mine(2)
    assert chain.spender.refuses(neutral)


def test_a_payout_beyond_the_balance_waits(chain: World) -> None:
    for ask in (chain.drafted, chain.spender.refuses):
        with pytest.raises(InsufficientCoinError, match="units of the coin"):
            ask(payment(5_000_001, pair=USDT_PAIR))
    with pytest.raises(InsufficientCoinError, match=r"lamports|too little"):
        chain.drafted(payment(10 * SOL))
    with pytest.raises(InsufficientCoinError, match="lamports and needs"):
        chain.drafted(payment(10 * SOL - PLAIN - SIGNATURE))


def test_coin_promised_to_other_payouts_does_not_count(chain: World) -> None:
    assert chain.drafted(payment(5_000_000, pair=USDT_PAIR))
    with pytest.raises(InsufficientCoinError, match="units of USDT"):
        chain.drafted(payment(5_000_000, pair=USDT_PAIR), USDT=1)
    with pytest.raises(InsufficientCoinError, match="lamports"):
        chain.drafted(payment(SOL), SOL=9 * SOL - PLAIN)
    with pytest.raises(InsufficientCoinError, match="lamports"):
        chain.drafted(payment(1, pair=USDT_PAIR), SOL=10 * SOL - PLAIN)


def test_a_hot_wallet_without_sol_waits(chain: World) -> None:
    chain.solana.give(HOT_KEY.address, -10 * SOL + PLAIN)
    chain.solana.mine(2)

    with pytest.raises(InsufficientCoinError):
        chain.drafted(payment(1, pair=USDT_PAIR))


def test_above_the_cap_nothing_is_offered(chain: World) -> None:
    ceiling = chain.drafted(payment(1, pair=USDT_PAIR)).offer.ceiling_units

    assert chain.drafted(payment(1, pair=USDT_PAIR), cap=ceiling + 10)
    with pytest.raises(FeeTooHighError):
        chain.drafted(payment(1, pair=USDT_PAIR), cap=HOLDING)


def test_a_price_is_that_of_the_accounts_that_are_written(chain: World) -> None:
    usual = chain.drafted(payment(1, pair=USDT_PAIR)).offer
    chain.solana.act("price", floor=7_000_000, accounts=[holding(HOT_KEY.address)])
    chain.solana.mine(150)

    assert chain.drafted(payment(PLAIN)).offer.terms["price"] == usual.terms["price"]
    dear = chain.drafted(payment(1, pair=USDT_PAIR)).offer
    assert dear.terms["price"] == 7_000_000
    assert dear.ceiling_units == HOLDING + SIGNATURE + -(-dear.terms["limit"] * 7_000_000 // 10**6)


def test_price_too_low_lands_nowhere(chain: World) -> None:
    draft, attempt = chain.signed(payment(5, pair=USDT_PAIR))
    chain.solana.act("price", floor=1_000_000)
    assert chain.spender.send(attempt.raw) is Sending.TAKEN
    chain.solana.mine(140)

    assert chain.spender.fate(case(draft, attempt)).kind is FateKind.WAITING
    assert chain.spender.send(attempt.raw) is Sending.TAKEN, "the same bytes are sent until they are dead"
    chain.solana.mine(15)
    fate = chain.spender.fate(case(draft, attempt))
    assert (fate.kind, fate.cause) == (FateKind.DEAD, "expired")
    assert chain.spender.send(attempt.raw) is Sending.EXPIRED
    assert chain.solana.token_balance(THEIRS) == 0

    again = chain.paid(payment(5, pair=USDT_PAIR))
    assert again[0].offer.terms["price"] == 1_000_000
    assert chain.spender.fate(case(*again)).is_success
    assert chain.solana.token_balance(THEIRS) == 5


def test_answer_lost_then_restart(chain: World) -> None:
    _, attempt = chain.signed(payment(PLAIN))
    # The node took it, and the answer never came.
    chain.solana.send(attempt.raw)
    chain.solana.mine()

    assert chain.spender.send(attempt.raw) is Sending.TAKEN
    chain.solana.settle()
    assert chain.spender.send(attempt.raw) is Sending.TAKEN
    assert chain.solana.balance(THEIRS) == PLAIN


def test_a_fee_burnt_without_effect_is_reported(chain: World) -> None:
    chain.solana.give_tokens(THEIRS, 1)
    draft, attempt = chain.signed(payment(5, pair=USDT_PAIR))
    chain.solana.send(attempt.raw)
    chain.solana.act("freeze", address=holding(THEIRS))
    chain.solana.settle()

    fate = chain.spender.fate(case(draft, attempt))

    assert [(each.effect, each.problem) for each in fate.outputs] == [("none", "the token account is frozen")]
    assert SIGNATURE < fate.fee_units < HOLDING
    assert moved(fate) == {(HOT_KEY.address, "SOL"): -fate.fee_units}


def test_what_is_sent_after_its_window_is_refused_and_without_coin_as_well(chain: World) -> None:
    _, old = chain.signed(payment(PLAIN))
    chain.outlive()
    assert chain.spender.send(old.raw) is Sending.EXPIRED

    _, poor = chain.signed(payment(SOL))
    chain.solana.give(HOT_KEY.address, -10 * SOL + PLAIN)
    assert chain.spender.send(poor.raw) is Sending.UNFUNDED
    chain.solana.give(HOT_KEY.address, -PLAIN)
    assert chain.spender.send(poor.raw) is Sending.UNFUNDED


def test_a_chain_far_ahead_of_the_scan_makes_no_window(chain: World) -> None:
    near = chain.drafted(payment(PLAIN), scanned=chain.scanned(behind=150)).claim
    assert isinstance(near, Window)
    assert near.last_block == chain.solana.chain.blocks[-2].height + 150
    with pytest.raises(ProviderError, match="the scan is at"):
        chain.drafted(payment(PLAIN), scanned=chain.scanned(behind=152))


def test_a_window_ends_no_earlier_than_the_scan_s_blocks_allow(chain: World) -> None:
    ahead = chain.drafted(payment(PLAIN), scanned=chain.scanned(behind=-20)).claim

    assert isinstance(ahead, Window)
    assert ahead.last_block == chain.solana.chain.head.height + 20 + 150
