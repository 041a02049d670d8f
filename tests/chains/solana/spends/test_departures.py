"""A transaction that one of our keys signed is read whole, and proved by its signatures."""

from __future__ import annotations

from typing import Any

import pytest
from solders.hash import Hash
from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey

from chains.base import AbsentError, Block, DisownedError, NotYetError, ProviderError
from chains.net.json_rpc import JsonRpc
from chains.one_transfer import departed
from chains.solana import programs, transactions
from chains.solana.spends import departures
from chains.spending import Departure, FateKind, Window
from core.catalogue.catalogue import Pair
from tests.chains.solana.spends.world import (
    HOLDING,
    HOT_KEY,
    KEYRING,
    OURS,
    PAIRS,
    SIGNATURE,
    THEIRS,
    USDT_PAIR,
    World,
    case,
    moved,
    payment,
    providers_of,
)
from tests.peers.solana.chain import SOL, USDT, holding


def read(
    chain: World, txid: str, slot: int | None = None, node: JsonRpc | None = None, *, sender: str = ""
) -> Departure | None:
    block = chain.header(chain.slot_of(txid) if slot is None else slot)
    return departures.read(node or chain.node(), txid, block, PAIRS, sender=sender)


@pytest.mark.parametrize("pair", [None, USDT_PAIR], ids=["SOL", "USDT"])
def test_a_payout_without_a_row_is_read_as_it_was_signed(chain: World, pair: Pair | None) -> None:
    draft, attempt = chain.paid(payment(1_000_000, pair=pair, memo="1234 \U0001f9ff"))

    departure = read(chain, attempt.txid)

    assert departure is not None
    fate = chain.spender.fate(case(draft, attempt))
    assert (departure.txid, departure.sender, departure.pair) == (attempt.txid, HOT_KEY.address, pair)
    assert departure.payer == ""
    assert departure.outputs == draft.intent.outputs
    assert (departure.is_transfer, departure.raw, departure.failed) == (True, attempt.raw, frozenset())
    assert (departure.height, departure.block_hash) == (fate.height, fate.block_hash)
    assert departure.fee_units == fate.fee_units <= departure.offer.ceiling_units
    assert departure.offer.terms == draft.offer.terms


def test_its_window_is_over_no_earlier_than_that_of_its_draft(chain: World) -> None:
    draft, attempt = chain.signed(payment(1_000_000))
    chain.solana.mine(30)
    chain.solana.send(attempt.raw)
    chain.solana.settle()
    departure = read(chain, attempt.txid)

    assert departure is not None
    assert departure.window is not None
    assert isinstance(draft.claim, Window)
    assert draft.claim.last_block is not None
    assert departure.window.reference == draft.claim.reference
    assert departure.window.last_block is not None
    assert departure.window.last_block >= draft.claim.last_block


def test_the_owner_sends_what_the_hot_wallet_pays_for(chain: World) -> None:
    chain.solana.give_tokens(OURS.address, 9_000)
    chain.solana.give(OURS.address, SOL)
    chain.solana.mine(2)
    for units, pair in ((9_000, USDT_PAIR), (SOL, None)):
        _, attempt, fate = chain.swept(units, pair)
        departure = read(chain, attempt.txid)
        assert departure is not None
        assert (departure.sender, departure.is_transfer) == (OURS.address, True)
        assert (departure.payer, departure.fee_units) == (HOT_KEY.address, fate.fee_units)


def test_same_amount_other_memo_after_restore(chain: World) -> None:
    paid = [chain.paid(payment(1_000_000, memo=memo)) for memo in ("one", "two", "")]

    read_back = [read(chain, attempt.txid) for _, attempt in paid]

    assert [each and each.outputs[0].memo for each in read_back] == ["one", "two", ""]


def test_one_without_effect_is_read_as_failed(chain: World) -> None:
    chain.solana.give_tokens(THEIRS, 1)
    _, attempt = chain.signed(payment(5, pair=USDT_PAIR))
    chain.solana.send(attempt.raw)
    chain.solana.act("freeze", address=holding(THEIRS))
    chain.solana.settle()

    departure = read(chain, attempt.txid)

    assert departure is not None
    assert (departure.failed, departure.is_transfer) == (frozenset({0}), True)


THIEF = Keypair.from_seed(b"\x0c" * 32)


def stolen(chain: World, *instructions: Instruction, payer: str = HOT_KEY.address) -> str:
    """Send another transaction than the gateway's, signed with its keys; return its id."""
    message = Message.new_with_blockhash(
        list(instructions), Pubkey.from_string(payer), Hash.from_string(chain.solana.chain.head.hash)
    )
    raw, keys = bytes(message), {HOT_KEY.address: HOT_KEY, OURS.address: OURS}
    signers = [str(key) for key in message.account_keys[: message.header.num_required_signatures]]
    signatures = [
        KEYRING.sign(keys[signer], raw) if signer in keys else bytes(THIEF.sign_message(raw)) for signer in signers
    ]
    txid = chain.solana.send(transactions.signed(raw, signatures).raw)
    chain.solana.settle()
    return txid


def test_a_theft_is_the_largest_loss_of_its_signer(chain: World) -> None:
    thief = str(THIEF.pubkey())
    coin = stolen(chain, *(programs.move_coin(HOT_KEY.address, thief, units) for units in (SOL, SOL)))
    token = stolen(
        chain,
        programs.create_associated(HOT_KEY.address, thief, USDT),
        programs.move_token(HOT_KEY.address, thief, USDT, units=7, decimals=6),
    )

    # The thief's account took its rent from the hot wallet.
    for txid, pair, units, fee in ((coin, None, 2 * SOL, SIGNATURE), (token, USDT_PAIR, 7, SIGNATURE + HOLDING)):
        departure = read(chain, txid)
        assert departure is not None
        assert (departure.sender, departure.pair, departure.is_transfer) == (HOT_KEY.address, pair, False)
        assert [(each.recipient, each.units) for each in departure.outputs] == [(thief, units)]
        assert departure.fee_units == fee


@pytest.mark.parametrize("payer", [HOT_KEY.address, OURS.address])
def test_sol_that_leaves_with_a_token_counts_as_its_fee(chain: World, payer: str) -> None:
    thief = str(THIEF.pubkey())
    chain.solana.give_tokens(thief, 1)
    chain.solana.give(OURS.address, SOL)
    chain.solana.mine(2)
    txid = stolen(
        chain,
        programs.move_token(HOT_KEY.address, thief, USDT, units=7, decimals=6),
        programs.move_coin(HOT_KEY.address, thief, 3 * SOL),
        *([programs.move_coin(payer, thief, 1)] if payer == OURS.address else []),
        payer=payer,
    )
    departure = read(chain, txid, sender=HOT_KEY.address)

    assert departure is not None
    assert (departure.pair, [each.units for each in departure.outputs]) == (USDT_PAIR, [7])
    fee = SIGNATURE if payer == HOT_KEY.address else 0
    assert departure.fee_units == 3 * SOL + fee


def test_a_fee_that_a_stranger_paid_is_none_of_the_wallet(chain: World) -> None:
    thief = str(THIEF.pubkey())
    chain.solana.give(thief, SOL)
    chain.solana.mine(2)

    departure = read(chain, stolen(chain, programs.move_coin(HOT_KEY.address, thief, SOL), payer=thief))

    assert departure is not None
    assert (departure.sender, departure.fee_units) == (HOT_KEY.address, 0)


def test_a_signature_upon_nothing_moves_nothing(chain: World) -> None:
    departure = read(chain, stolen(chain, programs.write_memo("hello")))

    assert departure is not None
    assert (departure.sender, departure.outputs[0].units, departure.is_transfer) == (HOT_KEY.address, 0, False)


def test_a_transfer_of_a_token_that_is_not_offered_is_no_answer(chain: World) -> None:
    _, attempt = chain.paid(payment(5, pair=USDT_PAIR))
    slot = chain.slot_of(attempt.txid)

    with pytest.raises(ProviderError, match="not offered"):
        departures.read(chain.node(), attempt.txid, chain.header(slot), ())


def test_a_block_without_it_lacks_it_and_another_block_says_nothing(chain: World) -> None:
    _, attempt = chain.paid(payment(1_000_000))
    slot = chain.slot_of(attempt.txid)
    block = chain.header(slot)

    with pytest.raises(AbsentError, match="none such"):
        read(chain, attempt.txid, slot - 1)
    other = Block(height=slot, hash=THEIRS, parent_height=slot - 1, parent_hash=block.parent_hash, time=block.time)
    with pytest.raises(NotYetError, match="another block"):
        departures.read(chain.node(), attempt.txid, other, PAIRS)
    for lie in (lambda _truth, _params: None, lambda truth, _params: truth | {"slot": slot + 1}):
        with providers_of(chain, 1, getTransaction=lie) as (_, liars), pytest.raises(NotYetError, match="not show"):
            read(chain, attempt.txid, slot, JsonRpc(liars[0].url, timeout_s=5))


def test_an_invented_transaction_is_none(chain: World) -> None:
    _, attempt = chain.paid(payment(1_000_000))
    slot = chain.slot_of(attempt.txid)
    _, never_sent = chain.signed(payment(1_000_000))

    def lie(truth: Any, _params: list[Any]) -> Any:
        return truth | {"signatures": [*truth.get("signatures", []), never_sent.txid]}

    with providers_of(chain, 1, getBlock=lie) as (_, liars), pytest.raises(NotYetError, match="not show"):
        read(chain, never_sent.txid, slot, JsonRpc(liars[0].url, timeout_s=5))


def test_it_is_followed_like_a_recorded_spend(chain: World) -> None:
    draft, attempt = chain.paid(payment(5, pair=USDT_PAIR))
    departure = read(chain, attempt.txid)

    assert departure is not None
    fate = chain.spender.fate(case(draft, attempt))
    assert fate.kind is FateKind.INCLUDED
    assert moved(fate)[HOT_KEY.address, "SOL"] == -departure.fee_units
    assert departure.fee_units > HOLDING


@pytest.mark.parametrize("lost", [10 * SOL, 0], ids=["loses more", "loses nothing"])
def test_the_loss_of_our_signer_counts_whatever_others_lose(chain: World, lost: int) -> None:
    thief = str(THIEF.pubkey())
    for owner, units in ((OURS.address, 2 * SOL), (thief, 50 * SOL)):
        chain.solana.give(owner, units)
    chain.solana.mine(2)

    txid = stolen(
        chain,
        *([programs.move_coin(thief, THEIRS, lost)] if lost else []),
        programs.move_coin(OURS.address, THEIRS, SOL),
        payer=thief,
    )
    departure = read(chain, txid, sender=OURS.address)

    assert departure is not None
    assert (departure.sender, departure.is_transfer, departure.fee_units) == (OURS.address, False, 0)
    assert [(each.recipient, each.units) for each in departure.outputs] == [(THEIRS, SOL)]


def test_a_stranger_s_transfer_that_the_hot_wallet_pays_for_costs_it_the_fee(chain: World) -> None:
    thief = str(THIEF.pubkey())
    chain.solana.give(thief, 2 * SOL)
    chain.solana.mine(2)
    body = transactions.Body(
        payer=HOT_KEY.address, sender=thief, recipient=THEIRS, units=SOL, limit=5_000, price=10**9, mark=1,
        reference=chain.solana.chain.head.hash,
    )  # fmt: skip
    message = transactions.message(body)
    attempt = transactions.signed(message, [KEYRING.sign(HOT_KEY, message), bytes(THIEF.sign_message(message))])
    chain.solana.send(attempt.raw)
    chain.solana.settle()

    departure = read(chain, attempt.txid, sender=HOT_KEY.address)

    assert departure is not None
    assert (departure.sender, departure.payer, departure.is_transfer) == (HOT_KEY.address, "", False)
    assert (departure.outputs[0].units, departure.fee_units) == (0, body.fee_units)


def test_a_memo_that_no_row_holds_is_left_out(chain: World) -> None:
    """PostgreSQL refuses the character, so that the departure would stay unread for ever."""
    body = transactions.Body(
        payer=HOT_KEY.address, sender=HOT_KEY.address, recipient=THEIRS, units=SOL, memo="a\x00b", limit=50_000,
        price=10**9, mark=1, reference=chain.solana.chain.head.hash,
    )  # fmt: skip
    message = transactions.message(body)
    attempt = transactions.signed(message, [KEYRING.sign(HOT_KEY, message)])
    chain.solana.send(attempt.raw)
    chain.solana.settle()

    departure = read(chain, attempt.txid)

    assert departure is not None
    assert (departure.is_transfer, [(each.units, each.memo) for each in departure.outputs]) == (False, [(SOL, "")])


def test_what_other_keys_signed_is_disowned(chain: World) -> None:
    _, attempt = chain.paid(payment(1_000_000))

    with pytest.raises(DisownedError, match="other keys"):
        read(chain, attempt.txid, sender=OURS.address)
    disowned, lagging = DisownedError("other keys"), NotYetError("no such block")
    for answers in ([disowned, lagging], [lagging, disowned], [None, disowned]):
        with pytest.raises(DisownedError):
            departed(answers)
