"""Transactions: recorded ones with the figures of another program, changed ones, and the books of a whole ledger."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chains.ton import boc, dictionaries, transactions
from chains.ton.cells import Cell, CellError
from chains.ton.credits import coin_credit, jetton_credit
from chains.ton.slices import Builder, Slice
from chains.ton.transactions import Link, Transaction
from devstack.ton.ledger import Ledger
from tests.chains.ton.recorded import TRANSACTIONS
from tests.chains.ton.world import FAUCET, TON, Wallet, coin, issuer

YEAR_S = 365 * 86_400


def recorded(name: str) -> Transaction:
    return transactions.read(boc.read_base64(TRANSACTIONS[name][0]))


def figures(transaction: Transaction) -> dict[str, Any]:
    """Return the fields that the other program was asked for."""
    compute, action = transaction.compute, transaction.action
    return {
        "hash": transaction.hash.hex(),
        "lt": transaction.lt,
        "now": transaction.now,
        "total_fees": transaction.total_fees,
        "before": transaction.status_before,
        "after": transaction.status_after,
        "kind": transaction.incoming.kind,
        "units": transaction.incoming.units,
        "bounced": transaction.incoming.bounced,
        "sent": [(each.recipient[:6], each.units, each.forward_fee) for each in transaction.outgoing],
        "storage_fees": transaction.storage_fees,
        "storage_due": transaction.storage_due,
        "due_collected": transaction.due_collected,
        "skipped": compute.skipped,
        "success": compute.success,
        "exit_code": compute.exit_code,
        "gas": compute.fees,
        "action": None if action is None else dataclasses.astuple(action),
        "aborted": transaction.aborted,
        "bounce": transaction.bounce,
        "destroyed": transaction.destroyed,
        "previous": (transaction.previous_hash.hex()[:8].strip("0"), transaction.previous_lt),
    }


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_the_place_in_an_account_s_history_is_read_alone(name: str) -> None:
    cell, whole = boc.read_base64(TRANSACTIONS[name][0]), recorded(name)
    expected = Link(
        hash=whole.hash,
        address=whole.address,
        lt=whole.lt,
        previous_hash=whole.previous_hash,
        previous_lt=whole.previous_lt,
        message=whole.incoming.cell.hash,
        is_external=whole.incoming.kind == "in",
    )
    assert transactions.link(cell) == expected
    # Its messages and its phases may have any form.
    none, empty = Builder().uint(0, 1).end(), Cell(b"", 0)
    for messages, message in ((none, b""), (Builder().uint(0b11, 2).ref(none).ref(empty).end(), none.hash)):
        other = Cell(cell.data, cell.bits, (messages, empty, empty))
        seen = dataclasses.replace(expected, hash=other.hash, message=message, is_external=False)
        assert transactions.link(other) == seen
        with pytest.raises(CellError):
            transactions.read(other)


def test_another_cell_has_no_place_in_a_history() -> None:
    cell = boc.read_base64(TRANSACTIONS["returned"][0])
    for other in (Cell(b"", 0), Cell(cell.data, cell.bits), Cell(b"\0" + cell.data[1:], cell.bits, cell.refs)):
        with pytest.raises(CellError):
            transactions.link(other)


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_transactions_have_the_fields_that_another_program_reads(name: str) -> None:
    assert figures(recorded(name)) == TRANSACTIONS[name][1]


def test_only_what_ran_and_took_effect_succeeded() -> None:
    succeeded = {name for name in TRANSACTIONS if recorded(name).succeeded}
    assert succeeded == {"first_request", "jettons", "bounced", "skipped"}


@st.composite
def changed(draw: st.DrawFn) -> Cell:
    """Return a recorded transaction with one cell changed: a bit, its length, or its references."""
    cell = boc.read_base64(TRANSACTIONS[draw(st.sampled_from(sorted(TRANSACTIONS)))][0])
    return changed_at(draw, cell, draw(st.integers(0, 4)))


def changed_at(draw: st.DrawFn, cell: Cell, steps: int) -> Cell:
    refs = list(cell.refs)
    if steps and refs and not cell.is_exotic:
        place = draw(st.integers(0, len(refs) - 1))
        refs[place] = changed_at(draw, refs[place], steps - 1)
        return Cell(cell.data, cell.bits, tuple(refs))
    if cell.is_exotic:
        return Builder().end()
    value = int.from_bytes(cell.data, "big") >> len(cell.data) * 8 - cell.bits
    match draw(st.sampled_from(["bit", "cut", "longer", "without", "exotic"])):
        case "bit" if cell.bits:
            value ^= 1 << draw(st.integers(0, cell.bits - 1))
            bits = cell.bits
        case "cut" if cell.bits:
            bits = draw(st.integers(0, cell.bits - 1))
            value >>= cell.bits - bits
        case "longer" if cell.bits < 1000:
            bits, value = cell.bits + 9, value << 9
        case "exotic":
            return Cell(bytes([2]) + bytes(32), 264, is_exotic=True)
        case _:
            bits, refs = cell.bits, refs[1:]
    builder = Builder().uint(value, bits)
    for ref in refs:
        builder.ref(ref)
    return builder.end()


@settings(max_examples=600)
@given(changed())
def test_a_changed_transaction_is_refused_or_read_and_stops_nothing(cell: Cell) -> None:
    with contextlib.suppress(CellError):
        transaction = transactions.read(cell)
        coin_credit(transaction, [])
        jetton_credit(transaction, [])
        assert transaction.hash == cell.hash


def rebuilt(cell: Cell, *, data: Cell | None = None, refs: dict[int, Cell]) -> Cell:
    whole = cell if data is None else data
    return Cell(whole.data, whole.bits, tuple(refs.get(place, ref) for place, ref in enumerate(cell.refs)))


def test_a_transaction_of_another_account_is_refused() -> None:
    for name in ("coin_to_an_empty_address", "first_request"):
        cell = boc.read_base64(TRANSACTIONS[name][0])
        parts = Slice(cell)
        head = Builder().uint(parts.uint(4), 4).uint(parts.uint(256) ^ 1, 256)
        with pytest.raises(CellError, match="another account"):
            transactions.read(head.cells(parts.rest()).end())
        with pytest.raises(CellError, match="another account"):
            transactions.read(cell, workchain=-1)


def test_a_message_that_another_account_sent_is_refused() -> None:
    cell, other = (boc.read_base64(TRANSACTIONS[name][0]) for name in ("first_request", "refused"))
    # The messages of one transaction, the incoming one of another.
    own, foreign = Slice(cell.refs[0]), Slice(other.refs[0])
    own.uint(2)
    foreign.uint(2)
    mixed = Builder().uint(3, 2).ref(own.ref())
    foreign.ref()
    with pytest.raises(CellError, match="another form"):
        transactions.read(rebuilt(cell, refs={0: mixed.ref(foreign.ref()).end()}))


def test_a_count_that_differs_from_the_messages_is_refused() -> None:
    cell = boc.read_base64(TRANSACTIONS["first_request"][0])
    parts = Slice(cell)
    before = 4 + 256 + 64 + 256 + 64 + 32
    head = Builder().uint(parts.uint(before), before)
    assert parts.uint(15) == 1
    rest = parts.rest()
    for count in (0, 2):
        with pytest.raises(CellError, match="another form"):
            transactions.read(Builder().cells(head.end()).uint(count, 15).cells(rest).end())


def test_a_transaction_without_a_message_is_refused() -> None:
    cell = boc.read_base64(TRANSACTIONS["coin_to_an_empty_address"][0])
    for nothing in (Builder().uint(0, 2).end(), Builder().uint(0, 3).end()):
        with pytest.raises(CellError):
            transactions.read(rebuilt(cell, refs={0: nothing}))


@pytest.mark.parametrize("tag", [0b0001, 0b0010, 0b0100, 0b0111])
def test_a_transaction_that_is_not_ordinary_is_refused(tag: int) -> None:
    cell = boc.read_base64(TRANSACTIONS["coin_to_an_empty_address"][0])
    parts = Slice(cell.refs[2])
    parts.uint(4)
    with pytest.raises(CellError, match="no ordinary"):
        transactions.read(rebuilt(cell, refs={2: Builder().uint(tag, 4).cells(parts.rest()).end()}))


def described(bits: str, *refs: Cell) -> Transaction:
    cell = boc.read_base64(TRANSACTIONS["coin_to_an_empty_address"][0])
    description = Builder().uint(int(bits, 2), len(bits))
    for ref in refs:
        description.ref(ref)
    return transactions.read(rebuilt(cell, refs={2: description.end()}))


def test_phases_that_are_rare_are_read() -> None:
    # No storage and no credit phase; the code was suspended; the message is worth less than its way back.
    size, fee = "001" + "00000001" + "001" + "00000001", "0001" + "00000101"
    kept = described("0000" + "000" + "0110" + "0" + "1" + "1" + "01" + size + fee + "0")
    assert (kept.compute.skipped, kept.bounce, kept.aborted, kept.destroyed) == ("suspended", "kept", True, False)
    without = described("0000" + "000" + "010" + "0" + "1" + "1" + "00" + "1")
    assert (without.compute.skipped, without.bounce, without.destroyed) == ("no_gas", "kept", True)
    # Rent was taken and is owed, the account frozen, and older debts were paid.
    storage, credit = "1" + fee + "1" + fee + "10", "1" + "1" + fee + fee + "0"
    owed = described("0000" + "1" + storage + credit + "001" + "0" + "1" + "0" + "0")
    assert (owed.storage_fees, owed.storage_due, owed.due_collected) == (5, 5, 5)
    assert owed.compute.skipped == "bad_state"
    with pytest.raises(CellError):
        described("0000" + "000" + "0111" + "0" + "1" + "0" + "0")
    with pytest.raises(CellError, match="more than"):
        described("0000" + "000" + "010" + "0" + "1" + "0" + "0" + "0")


def test_the_balances_of_all_accounts_are_the_sums_of_their_changes(ledger: Ledger) -> None:
    wallets = [Wallet(name) for name in ("hot", "deposit", "admin", "other")]
    for wallet in wallets:
        ledger.pay(FAUCET, wallet.address, 5 * TON)
    hot, deposit, admin, other = wallets
    usd = issuer(admin)
    usd.issue(ledger, hot.address, 10_000)
    hot.transfer(ledger, usd.transfer(hot, deposit.address, 500, forward=5), coin(other.address, TON))
    ledger.now += 3 * YEAR_S
    hot.transfer(ledger, usd.transfer(hot, deposit.address, 10**9), coin(other.address, 10**15))
    deposit.transfer(ledger, usd.transfer(deposit, hot.address, 400), coin(usd.jetton.master, TON, bounce=True))
    other.transfer(ledger, coin("0:" + "77" * 32, TON, bounce=True))
    ledger.pay(FAUCET, "0:" + "78" * 32, TON // 3, bounce=True)

    changes = dict[str, int]()
    for cell in ledger.cells:
        transaction = transactions.read(cell)
        changes[transaction.address] = changes.get(transaction.address, 0) + transaction.change
    assert len(ledger.cells) > 25
    assert {transaction.bounce for transaction in map(transactions.read, ledger.cells)} == {None, "returned"}
    assert changes == {address: ledger.balance(address) for address in changes}


def leaf(*bits: str) -> Cell:
    text = "".join(bits)
    return Builder().uint(int(text or "0", 2), len(text)).end()


def fork(left: Cell, right: Cell) -> Cell:
    return Builder().uint(0, 2).ref(left).ref(right).end()


def test_dictionaries_are_read_with_every_kind_of_label() -> None:
    # Short: 0, unary length, bits. Long: 10, length, bits. Repeated: 11, bit, length.
    left = leaf("0", "110", "01", "111")
    right = fork(leaf("10", "1", "1", "000"), leaf("11", "0", "1", "001"))
    entries = dictionaries.read(fork(left, right), 3, entries_max=9)
    assert [(entry.key, entry.value.uint(3)) for entry in entries] == [(0b001, 7), (0b101, 0), (0b110, 1)]
    (entry,) = dictionaries.read(leaf("11", "1", "11"), 3, entries_max=1)
    assert (entry.key, dictionaries.read(None, 3, entries_max=0)) == (7, [])


@pytest.mark.parametrize(
    "cell",
    [
        leaf("0", "11110", "0101"),
        leaf("10", "11", "01"),
        leaf("11", "1"),
        leaf("0", "0"),
        Builder().uint(0, 3).ref(leaf("0", "110", "01")).ref(leaf("0", "110", "01")).end(),
        Cell(bytes([2]) + bytes(32), 264, is_exotic=True),
    ],
)
def test_a_dictionary_of_another_form_is_refused(cell: Cell) -> None:
    with pytest.raises(CellError):
        dictionaries.read(cell, 3, entries_max=9)


def test_a_key_longer_than_the_dictionary_s_is_named() -> None:
    with pytest.raises(CellError, match="too long"):
        dictionaries.read(leaf("0", "11110", "0101"), 3, entries_max=9)


def test_a_dictionary_whose_branches_are_shared_ends_at_its_limit() -> None:
    cell = leaf("0", "0")
    for _ in range(15):
        cell = fork(cell, cell)
    assert len(dictionaries.read(fork(leaf("0", "0"), leaf("0", "0")), 1, entries_max=2)) == 2
    with pytest.raises(CellError, match="too many"):
        dictionaries.read(cell, 15, entries_max=255)
