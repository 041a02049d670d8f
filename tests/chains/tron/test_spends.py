"""Transfers are tried, signed here, sent, and followed to their effect or their end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from eth_keys import keys

from chains.base import ForeignKeyError, ProviderError
from chains.spending import FateKind, FeeTooHighError, InsufficientCoinError, Sending, SpendRefusedError, Window
from chains.tron import transactions
from chains.tron.spends import drafts
from devstack.tron import wire
from tests.chains.tron.twists import SILENT, one_of, twisted, twisting
from tests.chains.tron.world import (
    CAP,
    HOT_KEY,
    KEYRING,
    OURS,
    THEIRS,
    USDT_PAIR,
    World,
    case,
    payment,
    world,
)
from tests.peers.tron.chain import BUYER, TRX, USDT, Tron


@pytest.mark.parametrize("pair", [None, USDT_PAIR], ids=["TRX", "USDT"])
def test_a_payout_arrives_once_for_what_was_offered_at_most(chain: World, pair: object) -> None:
    draft, attempt = chain.signed(payment(7 * TRX, pair=pair))  # type: ignore[arg-type]

    assert chain.spender.fate(case(draft, attempt)).kind is FateKind.WAITING
    assert [chain.spender.send(attempt.raw) for _ in range(2)] == [Sending.TAKEN] * 2
    height = chain.tron.mine()
    assert chain.spender.send(attempt.raw) is Sending.TAKEN
    fate = chain.spender.fate(case(draft, attempt))

    assert (fate.kind, fate.height, fate.txid, fate.is_success) == (FateKind.INCLUDED, height, attempt.txid, True)
    assert 0 < fate.fee_units <= draft.offer.ceiling_units
    assert (chain.tron.token_balance(THEIRS) if pair else chain.tron.balance(THEIRS)) == 7 * TRX
    currency = "USDT" if pair else "TRX"
    moved = {(each.address, each.currency): each.units for each in fate.movements}
    assert moved[THEIRS, currency] == 7 * TRX
    assert moved[HOT_KEY.address, "TRX"] == -fate.fee_units - (0 if pair else 7 * TRX)


def test_a_call_is_offered_a_fifth_more_energy_than_it_takes_what_a_busy_contract_adds_included(chain: World) -> None:
    draft, attempt = chain.signed(payment(TRX, pair=USDT_PAIR))
    chain.spender.send(attempt.raw)
    chain.tron.mine()

    receipt = chain.tron.info(attempt.txid)["receipt"]
    assert 0 < receipt["energy_penalty_total"] < receipt["energy_usage_total"]
    price = receipt["energy_fee"] // receipt["energy_usage_total"]
    assert draft.offer.terms["fee_limit"] == receipt["energy_usage_total"] * 120 // 100 * price


def test_signing_is_a_function_of_the_draft_alone(chain: World) -> None:
    draft, attempt = chain.signed(payment(1, pair=USDT_PAIR))

    assert chain.spender.sign(draft, counter=None, keys=KEYRING) == attempt
    read_rows = transactions.read(_raw(attempt.raw))
    assert read_rows is not None
    assert (read_rows.txid, read_rows.owner, read_rows.to, read_rows.has_more) == (
        attempt.txid,
        HOT_KEY.address,
        USDT,
        False,
    )
    with pytest.raises(ValueError, match="no number"):
        chain.spender.sign(draft, counter=1, keys=KEYRING)


def _raw(whole: bytes) -> bytes:
    return bytes(transactions._protocol().Transaction.FromString(whole).raw_data.SerializeToString())


def test_two_payouts_of_the_same_have_two_ids(chain: World) -> None:
    drafts = [chain.drafted(payment(1)) for _ in range(2)]

    assert drafts[0].offer.terms["timestamp_ms"] != drafts[1].offer.terms["timestamp_ms"]


def test_what_a_transaction_refers_to_is_irreversible_and_its_end_is_ten_minutes_behind(chain: World) -> None:
    claim = chain.drafted(payment(1)).claim

    assert isinstance(claim, Window)
    solid = chain.tron.chain.blocks[chain.tron.chain.solid_height()]
    assert claim.reference == solid.id
    assert claim.ends_at is not None
    assert 0 <= solid.time_ms + 600_000 - claim.ends_at.timestamp() * 1000 < 1000


def test_nothing_is_offered_more_for(chain: World) -> None:
    draft = chain.drafted(payment(1))

    assert chain.spender.dearer(draft, None, cap_units=CAP) is None  # type: ignore[arg-type]


def test_a_spend_is_dead_when_what_is_irreversible_is_past_its_end_and_not_before(chain: World) -> None:
    draft, attempt = chain.signed(payment(1))
    chain.tron.chain.advance(601)
    # The newest blocks are past it, the irreversible ones are not.
    chain.tron.mine(3)
    assert chain.spender.fate(case(draft, attempt)).kind is FateKind.WAITING

    chain.tron.mine(2)

    fate = chain.spender.fate(case(draft, attempt))
    assert (fate.kind, fate.cause) == (FateKind.DEAD, "expired")
    assert chain.spender.send(attempt.raw) is Sending.EXPIRED


def test_a_spend_included_in_time_is_never_dead(chain: World) -> None:
    draft, attempt = chain.signed(payment(1))
    chain.spender.send(attempt.raw)
    chain.tron.mine()
    chain.tron.chain.advance(601)
    chain.tron.mine(6)

    assert chain.spender.fate(case(draft, attempt)).is_success


def test_a_spend_that_would_revert_is_refused_before_signing(chain: World) -> None:
    with pytest.raises(SpendRefusedError, match="own contract"):
        chain.drafted(payment(1, pair=USDT_PAIR, to=USDT))
    with pytest.raises(SpendRefusedError, match="takes no TRX"):
        chain.drafted(payment(1, to=USDT))


def test_a_payout_beyond_the_balance_waits(chain: World) -> None:
    with pytest.raises(InsufficientCoinError, match="units of the token"):
        chain.drafted(payment(5_001 * TRX, pair=USDT_PAIR))
    with pytest.raises(InsufficientCoinError, match="units of the token"):
        chain.spender.refuses(payment(5_001 * TRX, pair=USDT_PAIR))
    with pytest.raises(InsufficientCoinError, match="sun"):
        chain.drafted(payment(10_000 * TRX))


def test_coin_promised_to_other_payouts_does_not_count(chain: World) -> None:
    assert chain.drafted(payment(5_000 * TRX, pair=USDT_PAIR))
    with pytest.raises(InsufficientCoinError, match="units of USDT"):
        chain.drafted(payment(5_000 * TRX, pair=USDT_PAIR), USDT=1)
    with pytest.raises(InsufficientCoinError, match="sun"):
        chain.drafted(payment(TRX), TRX=9_999 * TRX)


def test_above_the_cap_nothing_is_offered(chain: World) -> None:
    draft = chain.drafted(payment(1, pair=USDT_PAIR))

    assert chain.drafted(payment(1, pair=USDT_PAIR), cap=draft.offer.ceiling_units)
    with pytest.raises(FeeTooHighError):
        chain.drafted(payment(1, pair=USDT_PAIR), cap=draft.offer.ceiling_units - 1)


def test_a_fee_burnt_without_effect_is_reported(chain: World) -> None:
    draft = chain.drafted(payment(1, pair=USDT_PAIR))
    short = replace(draft, offer=replace(draft.offer, terms={**draft.offer.terms, "fee_limit": TRX}))
    attempt = chain.spender.sign(short, counter=None, keys=KEYRING)
    chain.spender.send(attempt.raw)
    chain.tron.mine()

    fate = chain.spender.fate(case(short, attempt))

    assert [each.effect for each in fate.outputs] == ["none"]
    assert "energy" in fate.outputs[0].problem
    assert fate.fee_units >= TRX
    assert [(each.address, each.currency, each.units) for each in fate.movements] == [
        (HOT_KEY.address, "TRX", -fate.fee_units)
    ]


def test_where_others_may_sign_nothing_is_drafted(chain: World) -> None:
    stranger = BUYER.address
    chain.tron.act("permission", address=HOT_KEY.address, keys=[stranger], threshold=1)

    with pytest.raises(ForeignKeyError, match="others than its own key"):
        chain.drafted(payment(1))


def test_one_of_two_providers_neither_freezes_nor_lets_pass(chain: World) -> None:
    with Tron(solidity_lag=3) as other:
        other.give(HOT_KEY.address, 10_000 * TRX)
        other.mine(5)
        other.act("permission", address=HOT_KEY.address, keys=[BUYER.address], threshold=1)
        both = world(chain.tron, [chain.tron.url, other.url])

        with pytest.raises(ProviderError, match="one provider alone") as caught:
            both.drafted(payment(1))
    assert not isinstance(caught.value, ForeignKeyError)


def test_death_takes_every_provider(chain: World) -> None:
    draft, attempt = chain.signed(payment(1))
    with Tron(solidity_lag=3) as other, twisting(chain) as third:
        other.mine(5)
        all_three = world(chain.tron, [chain.tron.url, other.url, third])
        chain.tron.chain.advance(601)
        chain.tron.mine(6)

        assert all_three.spender.fate(case(draft, attempt)).kind is FateKind.WAITING
        silent = world(chain.tron, [chain.tron.url, third, SILENT])
        with pytest.raises(ProviderError, match="not every provider"):
            silent.spender.fate(case(draft, attempt))
        assert world(chain.tron, [chain.tron.url, third]).spender.fate(case(draft, attempt)).kind is FateKind.DEAD


def test_a_transaction_forgotten_by_nodes_is_not_dead(chain: World) -> None:
    draft, attempt = chain.signed(payment(1))
    chain.spender.send(attempt.raw)
    chain.tron.mine()
    chain.tron.chain.advance(601)
    chain.tron.mine(6)

    def nothing(_answer: object) -> object:
        return {}

    with twisting(chain, gettransactioninfobyid=nothing) as one, twisting(chain, gettransactioninfobyid=nothing) as two:
        mixed = world(chain.tron, [one, chain.tron.url, two])
        assert mixed.spender.fate(case(draft, attempt)).kind is FateKind.WAITING
        with pytest.raises(ProviderError, match="not every provider"):
            world(chain.tron, [one, SILENT, two]).spender.fate(case(draft, attempt))


def test_whoever_knows_an_outcome_does_not_call_it_dead_whatever_its_blocks_show(chain: World) -> None:
    draft, attempt = chain.signed(payment(1))
    chain.spender.send(attempt.raw)
    chain.tron.mine()
    chain.tron.chain.advance(601)
    chain.tron.mine(6)

    def empty(answer: Any) -> Any:
        return {name: value for name, value in answer.items() if name != "transactions"}

    with twisted(chain, getblockbynum=empty) as torn, pytest.raises(ProviderError, match="its block has not"):
        torn.spender.fate(case(draft, attempt))


def test_a_signature_is_the_sender_s(chain: World) -> None:
    _, attempt = chain.signed(payment(1))
    parsed = transactions._protocol().Transaction.FromString(attempt.raw)

    recovered = keys.Signature(parsed.signature[0]).recover_public_key_from_msg_hash(bytes.fromhex(attempt.txid))

    assert wire.shown(recovered.to_canonical_address()) == HOT_KEY.address
    assert OURS.address == "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH"


def test_what_is_staked_is_reckoned_with_only_while_nothing_else_is_under_way(chain: World) -> None:
    chain.tron.act("stake", address=HOT_KEY.address, energy=10**7)
    poor = chain.tron.balance(HOT_KEY.address)

    with pytest.raises(InsufficientCoinError, match="sun"):
        chain.drafted(payment(1, pair=USDT_PAIR), TRX=poor - 1)


def test_what_is_staked_and_what_is_free_need_not_be_held(chain: World) -> None:
    chain.tron.send(chain.tron.token(OURS.address, TRX))
    chain.tron.give(OURS.address, 1)
    chain.tron.act("stake", address=OURS.address, energy=10**6)
    chain.tron.mine()
    intent = payment(1, pair=USDT_PAIR, wallet=OURS)

    assert chain.drafted(intent).offer.ceiling_units > TRX
    chain.tron.act("stake", address=OURS.address, energy=1)
    with pytest.raises(InsufficientCoinError, match="sun"):
        chain.drafted(intent)


def test_the_lower_of_two_stakes_counts(chain: World) -> None:
    with one_of(2, chain, "wallet/getaccountresource", lambda answer: answer | {"EnergyLimit": 10**9}) as torn:
        verdict = drafts.verdict(torn.providers, payment(1, pair=USDT_PAIR))
    assert verdict.staked_energy == 0


def test_no_sender_pays_trx_to_itself(chain: World) -> None:
    with pytest.raises(SpendRefusedError, match="himself"):
        chain.drafted(payment(1, to=HOT_KEY.address))


def test_where_others_may_move_a_part_nothing_is_drafted(chain: World) -> None:
    chain.tron.act("permission", address=HOT_KEY.address, keys=[BUYER.address], threshold=1, which="active")

    with pytest.raises(ForeignKeyError, match="others than its own key"):
        chain.drafted(payment(1))
