"""Messages of our wallets: as another program writes them, read back strictly, and run by TON's own code."""

from __future__ import annotations

import dataclasses

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from chains.ton import boc, messages, requests
from chains.ton.cells import Cell, CellError
from chains.ton.credits import coin_credit
from chains.ton.messages import Message
from chains.ton.requests import Action, Request
from chains.ton.slices import Builder, Slice
from chains.ton.transfers import TRANSFER, CoinTransfer, JettonTransfer, comment, transfer_of
from chains.ton.wallet import wallet_id, wallet_state
from devstack.ton.engine import RefusedError
from devstack.ton.ledger import Ledger
from tests.chains.ton.world import FAUCET, LIFE_S, TON, Wallet, at, coin, issuer, with_state

A, B = "0:" + "ab" * 32, "0:" + "cd" * 32
KEY = Ed25519PrivateKey.from_private_bytes(bytes([7]) * 32)
PUBLIC = KEY.public_key().public_bytes_raw()
WALLET = wallet_state(PUBLIC, is_test=False)
MAIN = wallet_id(is_test=False)
UNTIL = 1_800_000_000
MEMO = "Rechnung № 4711 \u2013 " + "é" * 100
WIDE = "\U0001f4b6" * 120
TRANSFERS = (
    CoinTransfer(recipient=A, units=1_500_000_000, bounce=False),
    CoinTransfer(recipient=B, units=1, bounce=True, memo=MEMO),
    JettonTransfer(
        jetton_wallet=A,
        gas_units=60_000_000,
        query_id=123_456_789,
        units=777,
        recipient=B,
        excess_to=WALLET.address,
        forward_units=1,
        memo=MEMO,
    ),
)
# A limit of the network for messages from outside.
EXTERNAL_BYTES_MAX = 65_535

addresses = st.binary(min_size=32, max_size=32).map(lambda account: f"0:{account.hex()}")
memos = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=120)
units = st.integers(0, 10**18)
coin_transfers = st.builds(CoinTransfer, recipient=addresses, units=units, bounce=st.booleans(), memo=memos)
jetton_transfers = st.builds(
    JettonTransfer,
    jetton_wallet=addresses,
    gas_units=units,
    query_id=st.integers(0, 2**64 - 1),
    units=units,
    recipient=addresses,
    excess_to=addresses,
    forward_units=units,
    memo=memos,
)


def body_of(cells: list[Cell], *, seqno: int) -> Cell:
    cell = requests.request(MAIN, seqno=seqno, valid_until=UNTIL, messages=cells).cell()
    return requests.signed(cell, KEY.sign(cell.hash))


def sign(cell: Cell) -> Cell:
    return requests.signed(cell, KEY.sign(cell.hash))


# As @ton/core 0.63.1 and @ton/ton 16.3.0 write the same -------------------------------------------------------------


def test_transfers_are_the_cells_of_another_program() -> None:
    assert [transfer.message().hash.hex() for transfer in TRANSFERS[1:]] == [
        "e97edc65a199d2505295b94588acea76bbbbc08fa5f5e3419ba4c36beeb23d7e",
        "5bd0d17e7a696fdf70e8af59111f4b695f57bf073963383e740da74b1e25cc39",
    ]


def test_a_request_is_the_cell_of_another_program() -> None:
    body = body_of([transfer.message() for transfer in TRANSFERS], seqno=5)
    message = messages.external(WALLET.address, body)

    assert WALLET.address == "0:949bc8af02b9eb02b449c4e11d594f4befd433c8c6b665967b60a9f9dbfff3d0"
    assert body.hash.hex() == "1f8c376c1ce5fd72c4678b20982c1c2adb763fba6489f96afc3cf8bb1f8868ec"
    assert message.hash.hex() == "d6ae6a16c7b1364e49f7b8f9ba8461517ff6f1338e807d55fc6ec991f43ca353"
    assert messages.read(message).normalized_hash == message.hash


def test_a_first_request_brings_the_wallet_and_its_id_leaves_it_out() -> None:
    body = body_of([TRANSFERS[0].message()], seqno=0)
    message = messages.external(WALLET.address, body, WALLET)
    read = messages.read(message)

    assert message.hash.hex() == "5cd580fefc9f3a6247555d399ef4223bd27b3ee6913275a068f25964980b0769"
    assert read.normalized_hash.hex() == "738b3a06d0668027136ca52dd8dc4f0e62e67bcf77b35e7c0465298405df256a"
    assert (read.kind, read.sender, read.recipient, read.state) == ("in", "", WALLET.address, WALLET)


def test_another_form_of_a_message_has_the_same_id() -> None:
    # Node and index may write the state into the message itself, name a sender and a fee.
    body = body_of([TRANSFERS[0].message()], seqno=0)
    head = Builder().uint(0b10, 2).uint(0b01, 2).uint(16, 9).uint(0xBEEF, 16).address(WALLET.address).coins(7)
    other = head.bit(1).bit(0).cells(WALLET.cell()).bit(1).ref(body).end()

    assert other.hash != messages.external(WALLET.address, body, WALLET).hash
    assert messages.read(other).state == WALLET
    assert messages.read(other).normalized_hash == messages.external(WALLET.address, body).hash


# Read again ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(coin_transfers | jetton_transfers)
def test_every_transfer_is_read_as_it_was_written(transfer: CoinTransfer | JettonTransfer) -> None:
    assert transfer_of(messages.read(transfer.message())) == transfer


@settings(max_examples=30)
@given(st.lists(coin_transfers | jetton_transfers, min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_every_request_is_read_as_it_was_written(transfers: list[CoinTransfer | JettonTransfer], seqno: int) -> None:
    cells = [transfer.message() for transfer in transfers]
    message = messages.external(WALLET.address, body_of(cells, seqno=seqno))
    read = requests.read(messages.read(boc.read(boc.write(message))).body)

    assert read.request == requests.request(MAIN, seqno=seqno, valid_until=UNTIL, messages=cells)
    assert (read.is_signed_by(PUBLIC), read.changes_wallet) == (True, False)
    assert [transfer_of(messages.read(action.message)) for action in read.request.actions] == transfers


def test_a_request_of_another_key_or_with_another_content_is_not_signed() -> None:
    body = body_of([TRANSFERS[0].message()], seqno=3)
    other = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key().public_bytes_raw()
    read = requests.read(body)
    assert (read.is_signed_by(PUBLIC), read.is_signed_by(other), read.is_signed_by(bytes(3))) == (True, False, False)
    for bits in (32, 64, 96):
        parts = Slice(body)
        before, changed = parts.uint(bits), parts.uint(32) ^ 1
        forged = Builder().uint(before, bits).uint(changed, 32).cells(parts.rest()).end()
        assert not requests.read(forged).is_signed_by(PUBLIC)
    assert not requests.read(requests.signed(read.request.cell(), bytes(64))).is_signed_by(PUBLIC)


def test_a_request_that_changes_the_wallet_shows_it() -> None:
    # Removes the right of signatures, or adds an extension.
    head = Builder().uint(0x7369676E, 32).uint(MAIN, 32).uint(UNTIL, 32).uint(1, 32)
    read = requests.read(sign(head.bit(0).bit(1).uint(0x04, 8).bit(0).end()))
    assert (read.changes_wallet, read.request.actions, read.is_signed_by(PUBLIC)) == (True, (), True)


def test_a_request_that_another_contract_brings_is_signed_all_the_same() -> None:
    # A thief of our key may let another wallet pay for it.
    read = requests.read(altered(operation=0x73696E74))
    assert (read.is_internal, read.is_signed_by(PUBLIC), len(read.request.actions)) == (True, True, 1)
    assert not requests.read(altered()).is_internal


def altered(**changes: int) -> Cell:
    """Return the cell of a request with one action, some of whose numbers are others."""
    fields = {"operation": 0x7369676E, "action": 0x0EC3C86D, "after": 0, "bits": 0, "refs": 0, "in_list": 0} | changes
    actions = Builder().ref(Builder().end()).uint(fields["action"], 32).uint(3, 8).ref(TRANSFERS[0].message())
    actions.uint(0, fields["in_list"])
    cell = Builder().uint(fields["operation"], 32).uint(MAIN, 32).uint(UNTIL, 32).uint(1, 32)
    cell.optional(actions.end()).bit(0).uint(0, fields["bits"])
    for _ in range(fields["refs"]):
        cell.ref(Builder().end())
    return sign(cell.end())


@pytest.mark.parametrize(
    "body",
    [
        Builder().end(),
        Builder().uint(0, 511).end(),
        sign(Builder().end()),
        altered(operation=0x6578746E),  # an extension's, which no key signs
        altered(action=0xAD4DE08E),  # sets another code
        altered(action=0x36E6B809),  # keeps coin back
        altered(bits=1),
        altered(refs=1),
        altered(in_list=1),
        Cell(bytes([2]) + bytes(32), 264, is_exotic=True),
    ],
)
def test_a_body_that_is_no_request_is_refused(body: Cell) -> None:
    assert requests.read(altered()).is_signed_by(PUBLIC)
    with pytest.raises(CellError):
        requests.read(body)


def test_a_request_has_one_message_to_two_hundred_and_fifty_five() -> None:
    cell = coin(A, 1).message()
    assert len(requests.read(body_of([cell] * 255, seqno=0)).request.actions) == 255
    for count in (0, 256):
        with pytest.raises(ValueError, match="messages at once"):
            body_of([cell] * count, seqno=0)
    actions = tuple(Action(3, cell) for _ in range(255))
    longer = Builder().ref(list_of(actions)).uint(0x0EC3C86D, 32).uint(3, 8).ref(cell).end()
    head = Builder().uint(0x7369676E, 32).uint(MAIN, 32).uint(UNTIL, 32).uint(1, 32)
    with pytest.raises(CellError, match="list of actions"):
        requests.read(sign(head.optional(longer).bit(0).end()))


def list_of(actions: tuple[Action, ...]) -> Cell:
    parts = Slice(Request(wallet_id=MAIN, valid_until=UNTIL, seqno=0, actions=actions).cell())
    parts.uint(128)
    cell = parts.optional()
    assert cell is not None
    return cell


def jetton_body(*, custom: bool = False, operation: int = TRANSFER, payload: Cell | None = None, more: int = 0) -> Cell:
    body = Builder().uint(operation, 32).uint(1, 64).coins(7).address(A).address(B)
    body.optional(Builder().end() if custom else None).coins(1).optional(payload)
    return body.uint(0, more).end()


def sent(body: Cell | None, *, bounce: bool = True) -> Message:
    return messages.read(messages.internal(B, 5, bounce=bounce, body=body))


INLINE = Builder().uint(TRANSFER, 32).uint(1, 64).coins(7).address(A).address(B).bit(0).coins(1).bit(1)


@pytest.mark.parametrize(
    "message",
    [
        sent(Builder().uint(0, 31).end()),
        sent(Builder().uint(1, 32).end()),
        sent(Builder().uint(0, 32).end()),  # a comment without a letter
        sent(Builder().uint(0, 32).raw(b"\xff").end()),  # no UTF-8
        sent(Builder().uint(0, 32).raw(b"a").ref(Builder().raw(b"b").end()).end()),  # cut at another place
        sent(Builder().uint(0, 33).end()),
        sent(Builder().ref(Builder().end()).end()),
        sent(Cell(bytes([2]) + bytes(32), 264, is_exotic=True)),
        sent(jetton_body(), bounce=False),
        sent(jetton_body(custom=True)),
        sent(jetton_body(operation=0x595F07BC)),  # burns
        sent(jetton_body(payload=Builder().uint(1, 32).end())),
        sent(jetton_body(payload=comment(""))),
        sent(jetton_body(more=1)),
        sent(INLINE.ref(Builder().end()).ref(Builder().end()).end()),
        messages.read(with_state(coin(A, 1).message(), WALLET)),
        messages.read(messages.external(A, comment("x"))),
        dataclasses.replace(sent(None), bounced=True),
        dataclasses.replace(sent(None), has_others=True),
    ],
)
def test_a_message_of_another_form_is_no_transfer(message: Message) -> None:
    assert transfer_of(sent(None)) == coin(B, 5, bounce=True)
    assert transfer_of(sent(jetton_body())) is not None
    assert transfer_of(message) is None


@pytest.mark.parametrize(
    "cell",
    [
        Builder().end(),
        Builder().uint(0, 4).end(),
        # A body in a reference, and more.
        Builder().uint(0b10, 2).address("").address(A).coins(0).uint(0b01, 2).ref(Builder().end()).bit(0).end(),
        Builder().uint(0b10, 2).address("").address(A).coins(0).uint(0b01, 2).end(),
        Cell(bytes([2]) + bytes(32), 264, is_exotic=True),
    ],
)
def test_a_cell_that_is_no_message_is_refused(cell: Cell) -> None:
    with pytest.raises(CellError):
        messages.read(cell)


def test_a_message_may_bring_other_currencies_flags_and_states() -> None:
    # Plain content is read; a state that no wallet has is known to be there and left out.
    head = Builder().uint(0b0111, 4).address(FAUCET).address(A).coins(9).bit(1).ref(Builder().end()).coins(3).coins(11)
    head.uint(1 << 40, 96)
    odd = Builder().bit(1).uint(7, 5).bit(0).bit(1).ref(Builder().end()).bit(1).ref(Builder().end()).bit(0).end()
    read = messages.read(head.uint(0b11, 2).ref(odd).bit(0).uint(5, 3).end())

    assert (read.units, read.has_others, read.forward_fee, read.sender) == (9, True, 11, FAUCET)
    assert (read.bounce, read.bounced, read.has_state, read.state) == (True, True, True, None)
    assert read.body == Builder().uint(5, 3).end()


@pytest.mark.parametrize(
    "state",
    [
        Builder().uint(0b00110, 5).ref(Builder().end()).end(),
        Builder().uint(0b001100, 6).ref(Builder().end()).ref(Builder().end()).end(),
        Builder().uint(0b00100, 5).ref(Builder().end()).end(),
        Builder().uint(0b00010, 5).ref(Builder().end()).end(),
        Builder().uint(0b0101110, 7).ref(Builder().end()).ref(Builder().end()).end(),
        Builder().uint(0b00111, 5).ref(Builder().end()).ref(Builder().end()).ref(Builder().end()).end(),
        Cell(bytes([2]) + bytes(32), 264, is_exotic=True),
    ],
)
def test_a_state_that_its_sender_made_up_stops_no_reading(state: Cell) -> None:
    head = Builder().uint(0b01, 2).uint(0, 2).address(FAUCET).address(A).coins(9).bit(0).coins(0).coins(0).uint(0, 96)
    read = messages.read(head.uint(0b11, 2).ref(state).bit(0).end())
    assert (read.has_state, read.state, read.units) == (True, None, 9)


def test_a_message_out_of_the_chain_is_read() -> None:
    head = Builder().uint(0b11, 2).address(A).address("").uint(0, 96).bit(0).bit(0).uint(7, 3)
    read = messages.read(head.end())
    assert (read.kind, read.sender, read.recipient, read.body) == ("out", A, "", Builder().uint(7, 3).end())


def test_fifty_outputs_with_the_longest_memos_are_within_the_network_s_limit() -> None:
    cells = [dataclasses.replace(TRANSFERS[2], memo=WIDE).message() for _ in range(50)]
    message = messages.external(WALLET.address, body_of(cells, seqno=0), WALLET)
    assert len(boc.write(message)) < EXTERNAL_BYTES_MAX
    assert len({cell.hash for cell in cells}) == 1
    apart = [
        dataclasses.replace(TRANSFERS[2], recipient=f"0:{number:064x}", memo=f"{number:03}{WIDE[3:]}").message()
        for number in range(50)
    ]
    assert len(boc.write(messages.external(WALLET.address, body_of(apart, seqno=0), WALLET))) < EXTERNAL_BYTES_MAX


# Run by the chain's own code ----------------------------------------------------------------------------------------


def test_the_first_request_makes_the_wallet_and_pays(ledger: Ledger) -> None:
    wallet = Wallet("hot")
    ledger.pay(FAUCET, wallet.address, 5 * TON)
    assert ledger.state(wallet.address) is None
    order = wallet.order(ledger, coin(A, TON, memo=MEMO).message(), coin(B, TON // 2).message())
    transactions = ledger.send(order)

    assert [transaction.address for transaction in transactions] == [wallet.address, A, B]
    assert (ledger.balance(A), ledger.balance(B)) == (TON, TON // 2)
    state = ledger.state(wallet.address)
    assert state is not None
    # The number has gone up in the contract's data; all else is as it was.
    assert (state.code, Slice(state.data).uint(33)) == (wallet.state.code, 1 << 32 | 1)
    assert transactions[0].incoming.normalized_hash == messages.read(order).normalized_hash
    assert [transfer_of(sent_message) for sent_message in transactions[0].outgoing] == [
        coin(A, TON, memo=MEMO),
        coin(B, TON // 2),
    ]


def test_a_request_is_taken_once_in_its_turn_and_in_its_time(ledger: Ledger) -> None:
    wallet = Wallet("hot")
    ledger.pay(FAUCET, wallet.address, 5 * TON)
    first, second = wallet.order(ledger, coin(A, 1).message()), wallet.order(ledger, coin(A, 2).message())
    with pytest.raises(RefusedError):
        ledger.send(second)
    ledger.send(first)
    with pytest.raises(RefusedError):
        ledger.send(first)
    ledger.now += LIFE_S
    with pytest.raises(RefusedError):
        ledger.send(second)
    ledger.now -= 1
    assert at(ledger.send(second), A)[0].incoming.units == 2


def test_a_request_of_another_key_is_refused(ledger: Ledger) -> None:
    wallet, thief = Wallet("hot"), Wallet("thief")
    ledger.pay(FAUCET, wallet.address, 5 * TON)
    made = requests.request(MAIN, seqno=0, valid_until=ledger.now + 9, messages=[coin(A, 1).message()]).cell()
    body = requests.signed(made, thief.key.sign(made.hash))
    with pytest.raises(RefusedError):
        ledger.send(messages.external(wallet.address, body, wallet.state))


def test_a_request_that_another_contract_brings_is_taken_too(ledger: Ledger) -> None:
    wallet = Wallet("hot")
    ledger.pay(FAUCET, wallet.address, 5 * TON)
    wallet.transfer(ledger, coin(A, 1))
    made = requests.request(MAIN, seqno=1, valid_until=ledger.now + 9, messages=[coin(B, 2).message()]).cell()
    parts = Slice(made)
    parts.uint(32)
    cell = Builder().uint(0x73696E74, 32).cells(parts.rest()).end()
    ran = ledger.pay(FAUCET, wallet.address, TON, body=requests.signed(cell, wallet.key.sign(cell.hash)))

    assert [(transaction.address, transaction.incoming.units) for transaction in ran] == [(wallet.address, TON), (B, 2)]
    read = requests.read(ran[0].incoming.body)
    assert (read.is_internal, read.is_signed_by(wallet.public), read.request.seqno) == (True, True, 1)
    # The same transaction also brought coin.
    assert coin_credit(ran[0], []) is not None


def test_fifty_outputs_leave_in_their_order(ledger: Ledger) -> None:
    wallet = Wallet("hot")
    ledger.pay(FAUCET, wallet.address, 100 * TON)
    transfers = [coin(f"0:{number + 1:064x}", TON + number, memo=WIDE) for number in range(50)]
    transactions = wallet.transfer(ledger, *transfers)

    assert [transfer_of(message) for message in transactions[0].outgoing] == transfers
    assert [ledger.balance(transfer.recipient) for transfer in transfers] == [TON + number for number in range(50)]


def test_a_skipped_action_is_not_paid(ledger: Ledger) -> None:
    wallet = Wallet("hot")
    ledger.pay(FAUCET, wallet.address, 5 * TON)
    transaction, _ = wallet.transfer(ledger, coin(A, 10**15), coin(B, 7))
    assert transaction.action is not None
    assert (transaction.succeeded, transaction.action.skipped, transaction.action.created) == (True, 1, 1)
    assert [transfer_of(message) for message in transaction.outgoing] == [coin(B, 7)]


def test_jettons_move_with_their_memo_and_what_is_left_comes_back(ledger: Ledger) -> None:
    hot, admin = Wallet("hot"), Wallet("admin")
    ledger.pay(FAUCET, hot.address, 5 * TON)
    ledger.pay(FAUCET, admin.address, 5 * TON)
    usd = issuer(admin)
    usd.issue(ledger, hot.address, 1_000)
    transfer = usd.transfer(hot, B, 250, forward=TON // 100, memo=MEMO)
    transactions = hot.transfer(ledger, transfer)

    assert transfer_of(transactions[0].outgoing[0]) == transfer
    wallet = ledger.state(usd.jetton.wallet(B))
    assert wallet is not None
    assert Slice(wallet.data).coins() == 250
    (notified,) = at(transactions, B)
    body = Slice(notified.incoming.body)
    assert (body.uint(32), body.uint(64), body.coins(), body.address()) == (0x7362D09C, 7, 250, hot.address)
    assert body.optional() == comment(MEMO)
    assert (notified.incoming.units, at(transactions, hot.address)[-1].incoming.units > 0) == (TON // 100, True)
