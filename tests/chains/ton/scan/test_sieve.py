"""A look at bytes shows the account, a message from outside, and owners of jettons, whatever the bytes' form."""

from __future__ import annotations

import pytest

from chains.ton import boc, transactions
from chains.ton.cells import Cell, CellError
from chains.ton.jettons import JETTONS
from chains.ton.scan.sieve import Look, Sieve
from chains.ton.slices import Builder
from devstack.ton.ledger import Ledger
from tests.chains.ton.recorded import TRANSACTIONS
from tests.chains.ton.world import FAUCET, TON, Wallet, coin, issuer

OURS = Wallet("deposit").address
[USDT] = JETTONS.values()


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_a_look_shows_the_account_and_the_kind_of_message(name: str) -> None:
    raw = boc.write(boc.read_base64(TRANSACTIONS[name][0]))
    read = transactions.read(boc.read(raw))
    look = Sieve([]).look(raw)
    account = int(read.address.partition(":")[2], 16)
    assert look == Look(account, read.incoming.kind == "in", ())


def test_a_look_shows_owners_of_the_jettons_that_are_known(ledger: Ledger) -> None:
    payer, admin = Wallet("payer"), Wallet("admin")
    for wallet in (payer, admin):
        ledger.pay(FAUCET, wallet.address, 50 * TON)
    usd = issuer(admin)
    usd.issue(ledger, payer.address, 10**6)
    begin = len(ledger.cells)
    payer.transfer(ledger, usd.transfer(payer, OURS, 250))
    looks = [Sieve([USDT, usd.jetton]).look(boc.write(cell)) for cell in ledger.cells[begin:]]
    by_account = {f"0:{look.account:064x}": look.owners for look in looks}
    assert by_account[usd.jetton.wallet(OURS)] == (OURS,)
    # The sender's own transaction has the same message, as one that left.
    assert {owners for owners in by_account.values() if owners} == {(OURS,)}
    assert all(look.owners == () for look in map(Sieve([USDT]).look, map(boc.write, ledger.cells)))


def test_the_state_of_usdt_shows_its_owner_wherever_it_is() -> None:
    owners = [OURS, FAUCET, "0:" + "00" * 31 + "01", "0:" + "ff" * 32]
    states = [USDT.state(owner).cell() for owner in owners]
    deep = Builder()
    for state in states:
        deep.ref(Builder().uint(5, 7).ref(state).end())
    raw = boc.write(_transaction_with(deep.end()))
    assert sorted(Sieve([USDT]).look(raw).owners) == sorted(owners)


def _transaction_with(extra: Cell) -> Cell:
    """Return a transaction's cell with one more reference, which no chain makes."""
    root = boc.read_base64(TRANSACTIONS["first_request"][0])
    return Cell(root.data, root.bits, (*root.refs, extra))


def test_bytes_of_an_unusual_form_are_read_whole() -> None:
    cell = boc.read_base64(TRANSACTIONS["first_request"][0])
    usual = boc.write(cell)
    expected = Sieve([]).look(usual)
    assert expected.is_external
    # The root is not the first cell: one that nothing refers to comes before.
    other = boc.read_base64(TRANSACTIONS["returned"][0])
    decoy = bytes((len(cell.refs), _parts(usual)[1][1])) + other.data + bytes((2, 2, 2)[: len(cell.refs)])
    for spare in (bytes((0, 0)), decoy):
        assert Sieve([]).look(_with_root_at(usual, 1, spare)) == expected
    assert Sieve([]).look(_with_hash(usual, cell)) == expected
    assert Sieve([]).look(_with_hash(usual, cell.refs[0], index=1)) == expected
    assert Sieve([]).look(_with_index(usual)) == expected


def _parts(raw: bytes) -> tuple[int, bytes]:
    """Return the number of cells, and their bytes. One byte each for sizes of up to 255 cells."""
    size, offset = raw[4] & 7, raw[5]
    assert size == 1
    return raw[6], raw[6 + 3 + offset + 1 : -4]


def _made(count: int, body: bytes, root: int, *, flags: int = 0, index: bytes = b"") -> bytes:
    head = bytes.fromhex("b5ee9c72") + bytes((flags | 1, 2, count, 1, 0))
    return head + len(body).to_bytes(2, "big") + bytes((root,)) + index + body


def _with_root_at(raw: bytes, root: int, before: bytes) -> bytes:
    """Return bytes with one cell more before the first; all references move on by one."""
    count, body = _parts(raw)
    moved, at = b"", 0
    for _ in range(count):
        first = body[at]
        end = at + 2 + (body[at + 1] + 1 >> 1)
        refs = body[end : end + (first & 7)]
        moved += body[at:end] + bytes(ref + 1 for ref in refs)
        at = end + len(refs)
    return _made(count + 1, before + moved, root)


def _with_hash(raw: bytes, cell: Cell, *, index: int = 0) -> bytes:
    """Return bytes of which one cell, the first or second, brings its hash and its depth."""
    count, body = _parts(raw)
    at = index * (2 + (body[1] + 1 >> 1) + (body[0] & 7))
    named = bytes((body[at] | 0x10, body[at + 1])) + cell.hash + cell.depth.to_bytes(2, "big")
    return _made(count, body[:at] + named + body[at + 2 :], 0)


def _with_index(raw: bytes) -> bytes:
    count, body = _parts(raw)
    ends, at = list[int](), 0
    for _ in range(count):
        at += 2 + (body[at + 1] + 1 >> 1) + (body[at] & 7)
        ends.append(at)
    return _made(count, body, 0, flags=0x80, index=b"".join(end.to_bytes(2, "big") for end in ends))


@pytest.mark.parametrize("raw", [b"", b"abc", bytes(40), bytes.fromhex("b5ee9c72"), b"\xff" * 200])
def test_rubbish_is_no_transaction(raw: bytes) -> None:
    with pytest.raises(CellError):
        Sieve([USDT]).look(raw)


def test_bytes_that_no_transaction_has_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = boc.write(boc.read_base64(TRANSACTIONS["first_request"][0]))
    monkeypatch.setattr(boc, "BYTES_MAX", len(raw))
    Sieve([USDT]).look(raw)
    monkeypatch.setattr(boc, "BYTES_MAX", len(raw) - 1)
    with pytest.raises(CellError, match="more bytes"):
        Sieve([USDT]).look(raw)


def test_an_owner_is_named_once() -> None:
    state = USDT.state(OURS).cell()
    twice = boc.write(_transaction_with(state)) + boc.write(state)
    assert twice.count(Sieve([USDT])._samples[0].end) == 2
    assert Sieve([USDT]).look(twice).owners == (OURS,)


def test_a_cut_transaction_is_no_transaction() -> None:
    raw = boc.write(boc.read_base64(TRANSACTIONS["returned"][0]))
    for end in range(0, 60, 7):
        with pytest.raises(CellError):
            Sieve([USDT]).look(raw[:end])


def test_a_tree_that_is_no_transaction_is_refused() -> None:
    for cell in (Builder().uint(7, 4).end(), Builder().uint(3, 4).uint(0, 300).ref(Builder().end()).end()):
        with pytest.raises(CellError):
            Sieve([]).look(boc.write(cell))


def test_coin_shows_no_owner(ledger: Ledger) -> None:
    wallet = Wallet("payer")
    ledger.pay(FAUCET, wallet.address, 5 * TON)
    wallet.transfer(ledger, coin(OURS, TON))
    assert [Sieve([USDT]).look(boc.write(cell)).owners for cell in ledger.cells] == [()] * 3
