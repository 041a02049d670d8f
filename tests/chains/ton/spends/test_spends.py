"""A payout is drafted, signed and sent, and the bytes do exactly what the draft says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from chains.base import ForeignKeyError, ProviderError
from chains.spending import (
    Counter,
    FeeTooHighError,
    InsufficientCoinError,
    KeyRef,
    Output,
    Purse,
    Sending,
    SpendRefusedError,
    Window,
)
from chains.ton import boc, messages, requests
from chains.ton.cells import Cell
from chains.ton.slices import Builder
from chains.ton.transfers import CoinTransfer, JettonTransfer, transfer_of
from chains.ton.wallet import StateInit, wallet_id, wallet_state
from core.addresses.ton import display
from tests.chains.ton.spends.world import (
    CAP,
    FRESH,
    HOT_KEY,
    KEYRING,
    LIFE_S,
    NETWORK,
    OURS,
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
from tests.chains.ton.world import TON, Wallet, issuer, with_state


def message_of(raw: bytes) -> messages.Message:
    return messages.read(boc.read(raw))


def transfers_of(raw: bytes) -> list[CoinTransfer | JettonTransfer | None]:
    made = requests.read(message_of(raw).body).request
    return [transfer_of(messages.read(action.message)) for action in made.actions]


def test_coin_arrives_with_its_memo(ton: World) -> None:
    before = ton.units(HOT_KEY.address)

    draft, attempt, fate = ton.paid(payment(3 * TON, memo="order 7"))

    assert fate.is_success
    assert ton.units(THEIRS) == 3 * TON
    assert transfers_of(attempt.raw) == [CoinTransfer(recipient=THEIRS, units=3 * TON, bounce=False, memo="order 7")]
    assert 0 < fate.fee_units <= draft.offer.ceiling_units
    # The fee is all that the wallet is poorer by besides.
    assert before - ton.units(HOT_KEY.address) == 3 * TON + fate.fee_units
    assert moved(fate) == {(HOT_KEY.address, "TON"): -3 * TON - fate.fee_units, (THEIRS, "TON"): 3 * TON}


def test_jettons_arrive_with_their_memo_and_the_rest_of_the_coin_comes_back(ton: World) -> None:
    before = ton.units(HOT_KEY.address)

    draft, attempt, fate = ton.paid(payment(700, pair=USDT, memo="x" * 120))

    assert fate.is_success
    assert ton.jettons(THEIRS) == 700
    [transfer] = transfers_of(attempt.raw)
    assert isinstance(transfer, JettonTransfer)
    assert (transfer.recipient, transfer.units, transfer.memo) == (THEIRS, 700, "x" * 120)
    assert transfer.excess_to == HOT_KEY.address
    assert attempt.mark == f"{transfer.query_id:016x}"
    assert fate.fee_units <= draft.offer.ceiling_units
    assert moved(fate) == {
        (HOT_KEY.address, "TON"): -fate.fee_units,
        (HOT_KEY.address, "USDT"): -700,
        (THEIRS, "USDT"): 700,
    }
    # The rest that comes back is a charge below nothing; the fee has all that went along.
    excess = [each for each in ton.ran(HOT_KEY.address) if each.incoming.kind == "internal"][-1]
    assert excess.incoming.units > transfer.gas_units // 4
    assert before - ton.units(HOT_KEY.address) == fate.fee_units - excess.change


def test_fifty_payouts_leave_in_one_request(ton: World) -> None:
    outputs = [Output(recipient=f"0:{number + 1:064x}", units=TON // 2 + number) for number in range(50)]

    draft, attempt, fate = ton.paid(payments(*outputs))

    assert [each.effect for each in fate.outputs] == ["exact"] * 50
    assert [ton.units(each.recipient) for each in outputs] == [each.units for each in outputs]
    assert fate.fee_units <= draft.offer.ceiling_units
    assert len(message_of(attempt.raw).body.refs) == 1
    [request] = [each for each in ton.ran(HOT_KEY.address) if each.incoming.kind == "in"]
    assert len(request.outgoing) == 50


def test_fifty_transfers_of_jettons_leave_in_one_request(ton: World) -> None:
    outputs = [Output(recipient=f"0:{number + 1:064x}", units=number + 1, memo="é" * 120) for number in range(50)]

    draft, attempt, fate = ton.paid(payments(*outputs, pair=USDT))

    assert fate.is_success
    assert [ton.jettons(each.recipient) for each in outputs] == list(range(1, 51))
    assert len({each.query_id for each in transfers_of(attempt.raw) if isinstance(each, JettonTransfer)}) == 1
    assert fate.fee_units <= draft.offer.ceiling_units


@pytest.mark.parametrize("count", [0, 51])
def test_a_request_has_no_other_number_of_outputs(ton: World, count: int) -> None:
    outputs = [Output(recipient=f"0:{number + 1:064x}", units=TON) for number in range(count)]
    with pytest.raises(ValueError, match="outputs"):
        ton.drafted(payments(*outputs))


def test_the_first_request_makes_the_contract_and_later_ones_do_not(ton: World) -> None:
    _, first, _ = ton.paid(payment(TON))
    _, second, _ = ton.paid(payment(TON))

    assert message_of(first.raw).state == wallet_state(KEYRING.public(HOT_KEY), is_test=True)
    assert not message_of(second.raw).has_state
    assert ton.seqno(HOT_KEY.address) == 2


def test_a_request_names_its_network_its_number_and_its_last_second(ton: World) -> None:
    draft, attempt = ton.signed(payment(TON), counter=7)

    assert isinstance(draft.claim, Counter)
    assert draft.claim.ends_at is not None
    made = requests.read(message_of(attempt.raw).body)
    assert made.is_signed_by(KEYRING.public(HOT_KEY))
    assert (made.request.wallet_id, made.request.seqno) == (wallet_id(is_test=True), 7)
    assert made.request.valid_until == int(draft.claim.ends_at.timestamp()) == ton.chain.head.time + LIFE_S
    assert attempt.txid == message_of(attempt.raw).normalized_hash.hex()


def test_signing_is_deterministic_and_needs_no_node(ton: World) -> None:
    draft, attempt = ton.signed(payment(700, pair=USDT))
    ton.nodes.clear()
    again = ton.spender.sign(draft, counter=0, keys=KEYRING)
    assert again == attempt


def test_a_request_ends_with_the_scan_s_time_and_never_later(ton: World) -> None:
    late = ton.drafted(payment(TON), scanned=ton.scanned(behind_s=30)).claim
    early = ton.drafted(payment(TON), scanned=ton.scanned(behind_s=-3_000)).claim
    assert isinstance(late, Counter)
    assert isinstance(early, Counter)
    assert late.ends_at is not None
    assert early.ends_at is not None
    assert early.ends_at - late.ends_at == timedelta(seconds=30)
    with pytest.raises(ProviderError, match="the scan is at"):
        ton.drafted(payment(TON), scanned=ton.scanned(behind_s=46))


def test_what_waits_is_taken_off_the_balance(ton: World) -> None:
    balance = ton.units(HOT_KEY.address)
    ceiling = ton.drafted(payment(TON)).offer.ceiling_units
    ton.drafted(payment(TON), TON=balance - TON - ceiling - TON // 10)
    with pytest.raises(InsufficientCoinError, match="with all that waits"):
        ton.drafted(payment(TON), TON=balance - TON - ceiling + 1)
    with pytest.raises(InsufficientCoinError, match="with all that waits"):
        ton.drafted(payment(1, pair=USDT), TON=balance)
    ton.drafted(payment(4_000_000, pair=USDT), USDT=1_000_000)
    with pytest.raises(InsufficientCoinError, match="of USDT"):
        ton.drafted(payment(4_000_000, pair=USDT), USDT=1_000_001)
    with pytest.raises(InsufficientCoinError, match="units of the token"):
        ton.drafted(payment(5_000_001, pair=USDT))


def test_the_cap_is_for_each_output(ton: World) -> None:
    one = ton.drafted(payment(TON)).offer.ceiling_units
    outputs = [Output(recipient=f"0:{number + 1:064x}", units=TON) for number in range(3)]
    assert ton.drafted(payment(TON), cap=one).offer.ceiling_units == one
    with pytest.raises(FeeTooHighError):
        ton.drafted(payment(TON), cap=one - 1)
    three = ton.drafted(payments(*outputs), cap=one).offer.ceiling_units
    with pytest.raises(FeeTooHighError):
        ton.drafted(payments(*outputs), cap=three // 3 - 1)


def test_a_jetton_master_or_wallet_is_paid_nothing(ton: World) -> None:
    for recipient in (USD.master, USD.wallet(HOT_KEY.address)):
        for pair in (None, USDT):
            with pytest.raises(SpendRefusedError, match="contract of a jetton"):
                ton.drafted(payment(7, pair=pair, to=recipient))
    with pytest.raises(SpendRefusedError, match="to itself"):
        ton.drafted(payment(7, to=HOT_KEY.address))


EUR_CODE = Builder().uint(7, 8).end()


def eur_data(units: int, *, status: int | None = None, rest: Cell | None = None) -> Cell:
    """Return the data of a wallet of a jetton that is not offered, in the forms that jettons have."""
    data = Builder() if status is None else Builder().uint(status, 4)
    data.coins(units).address(THEIRS).address(USD.master)
    return (data if rest is None else data.ref(rest)).end()


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (eur_data(0, rest=EUR_CODE), eur_data(9, rest=EUR_CODE)),
        (eur_data(0), eur_data(9)),
        (eur_data(0, status=0), eur_data(9, status=3)),
    ],
)
def test_a_wallet_of_a_jetton_that_is_not_offered_is_paid_nothing(ton: World, first: Cell, later: Cell) -> None:
    recipient = StateInit(code=EUR_CODE, data=first).address
    ton.chain.put(recipient, StateInit(code=EUR_CODE, data=later))
    ton.chain.put(FRESH, StateInit(code=EUR_CODE, data=later))
    for pair in (None, USDT):
        with pytest.raises(SpendRefusedError, match="contract of a jetton"):
            ton.drafted(payment(7, pair=pair, to=recipient))
        assert ton.drafted(payment(7, pair=pair, to=FRESH)), "its address is not that of a jetton wallet"


@pytest.mark.parametrize(
    "data",
    [
        Builder().end(),
        Builder().coins(9).address("").address(USD.master).end(),
        Builder().coins(9).address(THEIRS).address("").end(),
        Cell(bytes([2]) + bytes(32), 264, is_exotic=True),
        Builder().raw(bytes(100)).ref(Builder().raw(bytes(100)).end()).end(),
    ],
)
def test_a_contract_of_any_other_data_is_paid(ton: World, data: Cell) -> None:
    ton.chain.put(FRESH, StateInit(code=EUR_CODE, data=data))
    assert ton.drafted(payment(7, to=FRESH))


@pytest.mark.parametrize("texts", [("????", None), (None, "????"), ("A" * 20_000, None), (None, "A" * 20_000)])
def test_a_contract_that_cannot_be_read_is_paid(ton: World, texts: tuple[str | None, str | None]) -> None:
    plain = boc.write_base64(EUR_CODE)

    def shown(truth: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
        code, data = (text or plain for text in texts)
        return truth | {"state": "active", "code": code, "data": data} if asked["address"] == FRESH else truth

    ton.nodes[0].lies["getAddressInformation"] = shown
    assert ton.drafted(payment(7, to=FRESH))


def test_a_number_is_filled_by_nothing_sent_to_oneself(ton: World) -> None:
    _, _, fate = ton.paid(payment(0, to=HOT_KEY.address))
    assert fate.is_success
    assert moved(fate) == {(HOT_KEY.address, "TON"): -fate.fee_units}


def test_a_jetton_whose_wallets_are_not_known_is_not_moved(ton: World) -> None:
    other = replace(USDT, contract=display(issuer(Wallet("x"), "eur").jetton.master, NETWORK.family_parameters))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not known"):
        ton.drafted(payment(1, pair=other))


def test_no_higher_offer_is_made(ton: World) -> None:
    draft = ton.drafted(payment(TON))
    assert ton.spender.dearer(draft, Purse(), cap_units=CAP) is None


def test_what_is_signed_does_what_its_draft_says(ton: World) -> None:
    draft = ton.drafted(payment(TON))
    assert isinstance(draft.claim, Counter)
    jettons = ton.drafted(payment(7, pair=USDT))
    both = requests.request(wallet_id(is_test=True), seqno=0, valid_until=1, messages=[
        CoinTransfer(recipient=THEIRS, units=1, bounce=False).message(),
        issuer(Wallet("admin")).transfer(Wallet("admin"), THEIRS, 1).message(),
    ])  # fmt: skip
    strange = requests.request(0, seqno=0, valid_until=1, messages=[messages.external(THEIRS, Cell(b"", 0))])
    wrong = [
        replace(draft, intent=payment(TON + 1)),
        replace(draft, intent=payment(TON, to=FRESH)),
        replace(draft, intent=payment(TON, memo="x")),
        replace(draft, intent=payment(TON, pair=USDT)),
        replace(draft, intent=payments(Output(recipient=THEIRS, units=TON), Output(recipient=THEIRS, units=TON))),
        replace(jettons, intent=payment(8, pair=USDT)),
        replace(draft, claim=replace(draft.claim, ends_at=None)),
        replace(draft, claim=Window(reference="")),
        replace(draft, plan=b""),
        replace(draft, plan=jettons.plan),
        *(
            replace(draft, plan=boc.write(requests.signed(each.cell(), bytes(64))))
            for each in (both, strange)
        ),
    ]  # fmt: skip
    assert draft.claim.ends_at is not None
    wrong.append(replace(draft, claim=replace(draft.claim, ends_at=draft.claim.ends_at + timedelta(seconds=1))))
    for each in wrong:
        with pytest.raises(ValueError):  # noqa: PT011 - each by its own words
            ton.spender.sign(each, counter=0, keys=KEYRING)
    with pytest.raises(ValueError, match="counts"):
        ton.spender.sign(draft, counter=None, keys=KEYRING)


def test_a_key_signs_for_its_own_wallet_alone(ton: World) -> None:
    draft = ton.drafted(payment(TON))
    foreign = replace(draft.intent, wallet=KeyRef(address=OURS.address, ordinal=None))
    with pytest.raises(ValueError):  # noqa: PT011 - the keyring's own words
        ton.spender.sign(replace(draft, intent=foreign), counter=0, keys=KEYRING)


@pytest.mark.parametrize("code", [CAP, 0])
def test_another_contract_at_our_address_is_not_ours(ton: World, code: int) -> None:
    ton.paid(payment(TON))
    ton.nodes[0].lies["getAddressInformation"] = lambda truth, asked: (
        truth if asked["address"] != HOT_KEY.address else truth | ({"code": ""} if code else {"code": truth["data"]})
    )
    with pytest.raises(ProviderError):
        ton.drafted(payment(TON))
    with pytest.raises(ProviderError):
        ton.seqno(HOT_KEY.address)


def data_of(seqno: int, *, by_signature: bool = True, extensions: Cell | None = None) -> str:
    data = Builder().bit(by_signature).uint(seqno, 32).uint(wallet_id(is_test=True), 32)
    return boc.write_base64(data.raw(KEYRING.public(HOT_KEY)).optional(extensions).end())


@pytest.mark.parametrize("foreign", [{"by_signature": False}, {"extensions": Builder().bit(1).end()}])
def test_a_wallet_for_which_others_may_send_is_not_used(ton: World, foreign: dict[str, bool]) -> None:
    ton.paid(payment(TON))
    data = data_of(1, **foreign)  # type: ignore[arg-type]
    with world(ton.ton, 2) as two:

        def lie(truth: dict[str, object], asked: dict[str, object]) -> dict[str, object]:
            return truth | {"data": data} if asked["address"] == HOT_KEY.address else truth

        two.nodes[0].lies["getAddressInformation"] = lie
        with pytest.raises(ProviderError, match="one provider alone says that others may send"):
            two.drafted(payment(TON))
        two.nodes[1].lies["getAddressInformation"] = lie
        with pytest.raises(ForeignKeyError):
            two.drafted(payment(TON))


def test_a_frozen_wallet_sends_nothing(ton: World) -> None:
    ton.nodes[0].lies["getAddressInformation"] = lambda truth, _asked: truth | {"state": "frozen"}
    with pytest.raises(ProviderError, match="frozen for its debts"):
        ton.drafted(payment(TON))
    ton.nodes[0].lies["getAddressInformation"] = lambda truth, _asked: truth | {"state": "odd"}
    with pytest.raises(ProviderError, match="no account is"):
        ton.drafted(payment(TON))


def test_the_issuer_s_marks_refuse_a_transfer(ton: World) -> None:
    assert not ton.spender.refuses(payment(7, pair=USDT))
    with pytest.raises(InsufficientCoinError):
        ton.spender.refuses(payment(5_000_001, pair=USDT))
    assert ton.spender.refuses(payment(7, pair=USDT, to=USD.master))


def test_a_contract_is_asked_to_return_what_it_refuses(ton: World) -> None:
    code = Cell(bytes.fromhex("23ab1af245"), 40)
    state = StateInit(code=code, data=Cell(b"", 0))
    ton.deliver(with_state(messages.internal(state.address, TON // 20, bounce=False), state))
    [transfer] = transfers_of(ton.signed(payment(TON, to=state.address))[1].raw)
    assert isinstance(transfer, CoinTransfer)
    assert transfer.bounce


def test_bytes_that_a_node_knows_are_taken_once(ton: World) -> None:
    draft, attempt = ton.signed(payment(TON))
    assert [ton.spender.send(attempt.raw) for _ in range(2)] == [Sending.TAKEN] * 2
    ton.chain.settle()
    assert ton.spender.send(attempt.raw) is Sending.CLAIM_USED
    assert ton.spender.fate(case(draft, attempt)).is_success
    assert ton.units(THEIRS) == TON


def test_bytes_that_are_too_old_have_ended(ton: World) -> None:
    _, attempt = ton.signed(payment(TON))
    ton.chain.advance(LIFE_S)
    assert ton.spender.send(attempt.raw) is Sending.EXPIRED
