"""The fate of a spend is found on the chain itself: taken, refused and returned, skipped, or never to be taken."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from chains.base import Block, ProviderError
from chains.spending import Attempt, Counter, Draft, Fate, FateKind, Output, Sending, Window
from chains.ton import messages
from chains.ton.cells import Cell
from chains.ton.nodes import Toncenter
from chains.ton.spends import history, places, trace
from chains.ton.transactions import Transaction
from chains.ton.wallet import StateInit
from core.addresses.ton import display, parse
from devstack.ton.blocks import WHOLE, halves
from devstack.ton.sending import with_state
from tests.chains.ton.spends.world import (
    DEPTH,
    FRESH,
    HOT_KEY,
    KEYRING,
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
from tests.peers.json_rpc_node import Raw
from tests.peers.ton.chain import NETWORK, TON

# Throws where more than an eighth of a coin comes: PUSH s3; RSHIFT 27; THROWIF 5.
REFUSER: Final = StateInit(code=Cell(bytes.fromhex("23ab1af245"), 40), data=Cell(b"", 0))
# The same, with an endless loop.
BURNER: Final = StateInit(code=Cell(bytes.fromhex("23ab1a9290eade"), 56), data=Cell(b"", 0))
WAITING: Final = FateKind.WAITING


def make(ton: World, state: StateInit) -> str:
    ton.deliver(with_state(messages.internal(state.address, TON // 20, bounce=False), state))
    assert ton.chain.account(state.address, ton.chain.head.id.seqno).status == "active"
    return state.address


def richer(ton: World, units: int) -> None:
    """Have the provider report more coin than the hot wallet has."""

    def lie(truth: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
        is_hot = asked["address"] == HOT_KEY.address
        return truth | {"balance": str(int(truth["balance"]) + units)} if is_hot else truth

    ton.nodes[0].lies["getAddressInformation"] = lie


def sent(ton: World, draft: Draft, attempt: Attempt) -> tuple[Draft, Attempt]:
    assert ton.spender.send(attempt.raw) is Sending.TAKEN
    return draft, attempt


def test_a_skipped_action_is_not_paid(ton: World) -> None:
    richer(ton, 1_000 * TON)
    signed = ton.signed(payments(Output(recipient=THEIRS, units=600 * TON), Output(recipient=FRESH, units=500 * TON)))
    ton.nodes[0].be_honest()
    before = ton.units(HOT_KEY.address)
    draft, attempt = sent(ton, *signed)
    ton.chain.settle()

    fate = ton.spender.fate(case(draft, attempt))

    assert [(each.effect, each.problem) for each in fate.outputs] == [("exact", ""), ("none", trace.SKIPPED)]
    assert (ton.units(THEIRS), ton.units(FRESH)) == (600 * TON, 0)
    # The skipped sum is no fee.
    assert before - ton.units(HOT_KEY.address) == 600 * TON + fate.fee_units
    assert moved(fate) == {(HOT_KEY.address, "TON"): -600 * TON - fate.fee_units, (THEIRS, "TON"): 600 * TON}


def test_the_payouts_behind_a_skipped_one_are_paid(ton: World) -> None:
    richer(ton, 1_000 * TON)
    recipients = (THEIRS, FRESH, "0:" + "5a" * 32)
    outputs = [Output(recipient=each, units=units * TON) for each, units in zip(recipients, (600, 500, 7), strict=True)]
    signed = ton.signed(payments(*outputs))
    ton.nodes[0].be_honest()
    draft, attempt = sent(ton, *signed)
    ton.chain.settle()

    fate = ton.spender.fate(case(draft, attempt))

    assert [each.effect for each in fate.outputs] == ["exact", "none", "exact"]
    assert [ton.units(each) for each in recipients] == [600 * TON, 0, 7 * TON]


def test_of_equal_payouts_as_many_are_paid_as_have_left(ton: World) -> None:
    richer(ton, 1_000 * TON)
    signed = ton.signed(payments(*[Output(recipient=THEIRS, units=400 * TON) for _ in range(3)]))
    ton.nodes[0].be_honest()
    draft, attempt = sent(ton, *signed)
    ton.chain.settle()

    assert sorted(each.effect for each in ton.spender.fate(case(draft, attempt)).outputs) == ["exact", "exact", "none"]
    assert ton.units(THEIRS) == 800 * TON


def test_the_17th_of_50_bounces(ton: World) -> None:
    refuser = make(ton, REFUSER)
    recipients = [f"0:{number + 1:064x}" for number in range(50)]
    recipients[16] = refuser
    before = ton.units(HOT_KEY.address)

    draft, _, fate = ton.paid(payments(*(Output(recipient=each, units=TON) for each in recipients)))

    assert [place for place, each in enumerate(fate.outputs) if each.effect != "exact"] == [16]
    assert (fate.outputs[16].effect, fate.outputs[16].problem) == ("none", trace.REFUSED)
    # The coin came back less the fees of its way; receiving it is a charge of its own.
    [home] = [each for each in ton.ran(HOT_KEY.address) if each.incoming.bounced]
    assert before - ton.units(HOT_KEY.address) == 49 * TON + fate.fee_units + home.total_fees
    assert fate.fee_units < draft.offer.ceiling_units
    assert moved(fate)[HOT_KEY.address, "TON"] == -49 * TON - fate.fee_units
    assert (refuser, "TON") not in moved(fate)


def test_a_fresh_address_written_as_bounceable(ton: World) -> None:
    stays = display(FRESH, NETWORK.family_parameters)  # type: ignore[arg-type]
    raw = bytes([0x91, 0]) + bytes.fromhex(FRESH[2:])
    bounceable = base64.urlsafe_b64encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "big")).decode()
    assert bounceable != stays
    recipient = parse(bounceable, NETWORK.family_parameters)  # type: ignore[arg-type]

    _, _, fate = ton.paid(payment(TON, to=recipient))

    assert fate.is_success
    assert ton.units(FRESH) == TON


def test_a_contract_that_refuses(ton: World) -> None:
    refuser = make(ton, REFUSER)
    _, _, fate = ton.paid(payment(3 * TON, to=refuser))

    assert (fate.kind, fate.outputs[0].effect, fate.outputs[0].problem) == (FateKind.INCLUDED, "none", trace.REFUSED)
    assert ton.units(refuser) < TON // 20
    assert fate.fee_units < TON // 50
    assert moved(fate) == {(HOT_KEY.address, "TON"): -fate.fee_units}


def test_a_refused_payout_is_open_until_its_coin_is_back(ton: World) -> None:
    refuser = make(ton, REFUSER)
    draft, attempt = ton.sent(payment(3 * TON, to=refuser))
    fates = list[Fate]()
    while not ton.chain.is_quiet:
        ton.chain.mine()
        fates.append(ton.spender.fate(case(draft, attempt)))
    assert [[each.effect for each in fate.outputs] for fate in fates] == [[None], [None], ["none"]]
    assert [moved(fate)[HOT_KEY.address, "TON"] < -3 * TON for fate in fates] == [True, True, False]
    assert [fate.height for fate in fates] == [fates[0].height, fates[0].height, fates[0].height + 2]


def test_each_output_ends_by_itself(ton: World) -> None:
    """The second recipient's shard is so busy that it takes nothing."""
    draft, attempt = ton.sent(payments(*(Output(recipient=each, units=TON) for each in (THEIRS, FRESH))))
    real = ton.chain.ran[FRESH]
    ton.chain.settle()
    arrived = list(real)
    ton.nodes[0].hide(FRESH)
    fate = ton.spender.fate(case(draft, attempt))
    assert (fate.kind, [each.effect for each in fate.outputs]) == (FateKind.INCLUDED, ["exact", None])
    assert moved(fate) == {(HOT_KEY.address, "TON"): -2 * TON - fate.fee_units, (THEIRS, "TON"): TON}
    ton.nodes[0].be_honest()
    whole = ton.spender.fate(case(draft, attempt))
    assert (whole.is_success, whole.fee_units, whole.height >= fate.height) == (True, fate.fee_units, True)
    assert len(arrived) == 1


def test_coin_that_a_contract_burns_has_arrived(ton: World) -> None:
    """Its code takes all of it for gas, so that nothing is left for the way back."""
    make(ton, BURNER)
    units = 1 << 27
    _, _, fate = ton.paid(payment(units, to=BURNER.address))
    [*_, burnt] = ton.ran(BURNER.address)
    assert burnt.bounce == "kept"
    assert fate.is_success
    assert moved(fate)[HOT_KEY.address, "TON"] == -units - fate.fee_units


@pytest.mark.parametrize("blocks", range(3))
def test_a_payout_of_jettons_waits_for_the_recipient_s_jetton_wallet(ton: World, blocks: int) -> None:
    draft, attempt = ton.sent(payment(7, pair=USDT))
    ton.chain.mine(blocks)
    early = ton.spender.fate(case(draft, attempt))
    # Jettons have left once the wallet's own jetton wallet was asked.
    assert early.kind is (FateKind.INCLUDED if blocks == 2 else WAITING)
    assert [each.effect for each in early.outputs] == ([None] if blocks == 2 else [])
    ton.chain.mine(3 - blocks)
    fate = ton.spender.fate(case(draft, attempt))
    assert fate.is_success
    # The block that has all of it, not the one of the wallet's own transaction.
    [arrived] = ton.ran(USD.wallet(THEIRS))
    place = next(
        seqno
        for seqno in range(1, ton.chain.head.id.seqno + 1)
        if ton.chain.account(USD.wallet(THEIRS), seqno).last_lt >= arrived.lt
    )
    assert (fate.height, fate.block_hash) == (place, ton.chain.masters[place].id.hash.hex())


def test_more_jettons_than_there_are_come_to_nothing(ton: World) -> None:
    signed = ton.signed(payment(4_000_000, pair=USDT))
    ton.sent(payment(2_000_000, pair=USDT, to=FRESH))
    ton.chain.settle()
    # Signed when the wallet had enough, and sent when it has too little: its own jetton wallet refuses.
    draft = replace(signed[0], claim=replace(signed[0].claim, at_least=1))  # type: ignore[type-var]
    attempt = ton.spender.sign(draft, counter=1, keys=KEYRING)
    sent(ton, draft, attempt)
    before = ton.units(HOT_KEY.address)
    ton.chain.settle()

    fate = ton.spender.fate(case(draft, attempt))

    assert [(each.effect, each.problem) for each in fate.outputs] == [("none", trace.JETTONS_REFUSED)]
    [home] = [each for each in ton.ran(HOT_KEY.address) if each.incoming.bounced]
    assert before - ton.units(HOT_KEY.address) == fate.fee_units + home.total_fees
    # The coin that went along came back.
    assert fate.fee_units < draft.offer.terms["gas_units"] // 2
    assert ton.jettons(HOT_KEY.address) == 3_000_000


def test_jettons_come_back_from_a_recipient_whom_the_issuer_locks_on_the_way(ton: World) -> None:
    ton.ton.give_tokens(THEIRS, 1)
    ton.chain.settle()
    draft, attempt = ton.sent(payments(Output(recipient=FRESH, units=5), Output(recipient=THEIRS, units=7), pair=USDT))
    ton.chain.mine()
    ton.ton.lock(THEIRS, 2)
    ton.chain.settle()

    fate = ton.spender.fate(case(draft, attempt))

    assert [each.effect for each in fate.outputs] == ["exact", "none"]
    assert fate.outputs[1].problem == trace.JETTONS_REFUSED
    assert (ton.jettons(HOT_KEY.address), ton.jettons(THEIRS), ton.jettons(FRESH)) == (4_999_995, 1, 5)
    assert moved(fate)[HOT_KEY.address, "USDT"] == -5


def test_seqno_taken_by_a_stranger(ton: World) -> None:
    # A thief of the key, or a copy of this gateway.
    draft, attempt = ton.signed(payment(TON))
    _, theirs = ton.signed(payment(2 * TON, to=FRESH))
    assert ton.spender.send(theirs.raw) is Sending.TAKEN
    ton.chain.mine()
    assert ton.spender.send(attempt.raw) is Sending.CLAIM_USED
    assert ton.spender.fate(case(draft, attempt)).kind is WAITING
    ton.chain.mine(DEPTH)

    fate = ton.spender.fate(case(draft, attempt))

    assert (fate.kind, fate.cause) == (FateKind.DEAD, "claim_used")
    assert ton.units(THEIRS) == 0
    # The bytes never take effect.
    ton.spender.send(attempt.raw)
    ton.chain.settle()
    assert ton.units(THEIRS) == 0


def test_message_late_after_a_restore(ton: World) -> None:
    """The row of the first is lost, its message is still on its way. Of two with one number one takes effect."""
    lost_draft, lost = ton.signed(payment(TON))
    other_draft, other = ton.signed(payment(3 * TON))
    sent(ton, lost_draft, lost)
    assert ton.spender.send(other.raw) is Sending.TAKEN
    ton.chain.settle()
    ton.chain.mine(DEPTH)

    fates = [ton.spender.fate(case(*each)) for each in ((lost_draft, lost), (other_draft, other))]

    assert [fate.kind for fate in fates] == [FateKind.INCLUDED, FateKind.DEAD]
    assert ton.units(THEIRS) == TON
    # The next number shows that another request was made than those of our rows.
    assert ton.spender.next_counter(HOT_KEY.address, ours=0) == 1
    with world(ton.ton, 1, urls=[SILENT]) as two, pytest.raises(ProviderError, match="one provider alone"):
        two.spender.next_counter(HOT_KEY.address, ours=0)


def test_an_expired_request_is_dead_once_a_final_block_is_past_its_end(ton: World) -> None:
    draft, attempt = ton.signed(payment(TON))
    ton.chain.mine(DEPTH)
    assert ton.spender.fate(case(draft, attempt)).kind is WAITING
    ton.chain.advance(92)
    ton.chain.mine(DEPTH - 1)
    assert ton.spender.fate(case(draft, attempt)).kind is WAITING
    ton.chain.mine()
    fate = ton.spender.fate(case(draft, attempt))
    assert (fate.kind, fate.cause) == (FateKind.DEAD, "expired")
    # The same number is taken again, and the first never is.
    _, second, paid = ton.paid(payment(TON))
    assert paid.is_success
    assert second.txid != attempt.txid
    assert ton.spender.send(attempt.raw) in {Sending.CLAIM_USED, Sending.EXPIRED}
    assert ton.units(THEIRS) == TON


def test_a_shard_s_block_before_the_end_may_still_come(ton: World) -> None:
    """The master block is past the end, the newest block of the wallet's shard is not."""
    draft, attempt = ton.signed(payment(TON))
    end = ton.chain.head.time + 90
    ton.outlive()
    ton.nodes[0].lies["getBlockHeader"] = lambda truth, asked: (
        truth if asked["workchain"] == -1 else truth | {"gen_utime": end}
    )
    assert ton.spender.fate(case(draft, attempt)).kind is WAITING
    ton.nodes[0].be_honest()
    assert ton.spender.fate(case(draft, attempt)).kind is FateKind.DEAD


def test_a_request_without_an_end_waits(ton: World) -> None:
    draft, attempt = ton.signed(payment(TON))
    assert isinstance(draft.claim, Counter)
    ton.outlive()
    endless = replace(draft, claim=replace(draft.claim, ends_at=None))
    assert ton.spender.fate(case(endless, attempt)).kind is WAITING


def test_answer_lost_then_restart(ton: World) -> None:
    draft, attempt = ton.signed(payment(TON))

    def lose(_truth: Any, _asked: dict[str, Any]) -> object:
        return Raw(drop=True)

    ton.nodes[0].lies["sendBoc"] = lose
    with pytest.raises(ProviderError):
        ton.spender.send(attempt.raw)
    ton.nodes[0].be_honest()
    # Another process sends the same bytes, and they had been taken.
    with world(ton.ton) as restarted:
        assert restarted.spender.send(attempt.raw) is Sending.TAKEN
        ton.chain.settle()
        assert restarted.spender.send(attempt.raw) is Sending.CLAIM_USED
        assert restarted.spender.fate(case(draft, attempt)).is_success
    assert ton.units(THEIRS) == TON


def test_the_thousandth_message_after_ours_hides_nothing(ton: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy recipient, and specks that a stranger sends to our wallet."""
    monkeypatch.setattr(history, "PAGES_MAX", 1)
    draft, attempt = ton.sent(payments(Output(recipient=THEIRS, units=TON), Output(recipient=FRESH, units=TON)))
    ton.chain.settle()
    for _ in range(7):
        for address in (THEIRS, HOT_KEY.address):
            for units in range(20):
                ton.ton.give(address, units + 1)
        ton.chain.mine()
    assert ton.spender.fate(case(draft, attempt)).is_success
    other = replace(attempt, txid="00" * 32)
    assert ton.spender.fate(case(draft, other)).cause == "claim_used"


def test_a_number_of_a_row_is_asked_for(ton: World) -> None:
    draft, attempt = ton.signed(payment(TON))
    with pytest.raises(ValueError, match="counts"):
        ton.spender.fate(replace(case(draft, attempt), claim=Window(reference="")))


def test_an_attempt_with_other_messages_is_not_believed(ton: World) -> None:
    draft, attempt = ton.sent(payment(TON))
    ton.chain.settle()
    two = payments(Output(recipient=THEIRS, units=TON), Output(recipient=THEIRS, units=TON))
    with pytest.raises(ProviderError, match="other messages"):
        ton.spender.fate(replace(case(draft, attempt), intent=two))


def test_shards_split_between_a_payout_and_its_end(ton: World) -> None:
    recipients = [f"0:{digit}{'0' * 63}" for digit in "18"]
    draft, attempt = ton.sent(payments(*(Output(recipient=each, units=TON) for each in recipients)))
    ton.chain.mine()
    ton.chain.split(WHOLE)
    ton.chain.settle()
    assert ton.spender.fate(case(draft, attempt)).is_success
    ton.chain.merge(*halves(WHOLE))
    ton.chain.mine(9)
    assert ton.spender.fate(case(draft, attempt)).is_success


def test_storage_debt(ton: World) -> None:
    """A hot wallet that lay idle for years pays its rent with its next request."""
    ton.paid(payment(TON))
    ton.chain.advance(5 * 365 * 86_400)
    ton.chain.mine()
    balance = ton.units(HOT_KEY.address)
    ceiling = ton.drafted(payment(TON), next_counter=1).offer.ceiling_units
    draft, attempt = ton.sent(payment(balance - 2 * ceiling))
    ton.chain.settle()
    [*_, own] = [each for each in ton.ran(HOT_KEY.address) if each.incoming.kind == "in"]
    assert own.storage_fees > TON // 50
    fate = ton.spender.fate(case(draft, attempt))
    assert fate.is_success
    assert own.storage_fees < fate.fee_units <= draft.offer.ceiling_units


@pytest.mark.parametrize(("has_own", "expected"), [(True, ["exact", None]), (False, [])])
def test_an_end_that_no_master_block_has_yet_has_not_come(
    ton: World, monkeypatch: pytest.MonkeyPatch, *, has_own: bool, expected: list[str | None]
) -> None:
    """A node may show an account's transactions before it shows the master block that has them."""
    draft, attempt = ton.sent(payments(*(Output(recipient=each, units=TON) for each in (THEIRS, FRESH))))
    ton.chain.settle()
    late = {each.hash for each in ton.ran(FRESH if has_own else HOT_KEY.address)}
    real = places.first_with

    def first_with(node: Toncenter, wanted: Sequence[Transaction]) -> Block | None:
        return real(node, wanted) if late.isdisjoint(each.hash for each in wanted) else None

    def missing(_node: Toncenter, wanted: Sequence[Transaction]) -> frozenset[bytes]:
        return frozenset(late & {each.hash for each in wanted})

    monkeypatch.setattr(places, "first_with", first_with)
    monkeypatch.setattr(places, "missing", missing)
    fate = ton.spender.fate(case(draft, attempt))
    assert [each.effect for each in fate.outputs] == expected
    assert fate.kind is (FateKind.INCLUDED if has_own else WAITING)


def test_the_newest_master_block_has_all_that_ended(ton: World) -> None:
    ton.paid(payment(TON))
    [arrived] = ton.ran(THEIRS)
    node = Toncenter(ton.nodes[0].url, timeout_s=5)
    later = replace(arrived, lt=arrived.lt + 10**12)
    assert places.missing(node, [arrived, later]) == {later.hash}
    assert places.missing(node, [arrived]) == frozenset()
