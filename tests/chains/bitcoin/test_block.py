"""Blocks made by hand: valid ones are read; hidden, doubled or invented transactions are refused."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chains.base import ProviderError
from chains.bitcoin import headers
from chains.bitcoin.block import merkle_root, outpoints, read_block
from chains.bitcoin.headers import RULES, check_follows, read_header, target_of
from chains.bitcoin.scripts import script_of
from chains.bitcoin.transactions import (
    FINAL,
    NOWHERE,
    Tx,
    TxInput,
    TxOutput,
    compact,
    double_sha256,
    id_bytes,
    id_text,
    sized,
)
from tests.chains.bitcoin.conftest import OURS

REGTEST, TODAY = RULES["regtest"], RULES["main"]
# As the main chain was when it was young.
MAIN = replace(TODAY, target_max=headers.EASIEST_EVER)
EASY = 0x207FFFFF
HEIGHT = 300
GENESIS_HEADER = (
    "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc81bc3"
    "888a51323a9fb8aa4b1e5e4a29ab5f49ffff001d1dac2b7c"
)
GENESIS = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"


def coinbase(height: int = HEIGHT, *, script: bytes | None = None) -> Tx:
    named = sized(height.to_bytes(height.bit_length() // 8 + 1, "little")) + b"\0" if script is None else script
    maker = TxInput(txid=NOWHERE, vout=FINAL, sequence=FINAL, script=named, witness=(bytes(32),))
    return Tx(version=2, inputs=(maker,), outputs=(TxOutput(units=50, script=b"\x51"),), lock_time=0)


def payment(number: int, *, signed: bool = True) -> Tx:
    spent = TxInput(
        txid=f"{number:064x}", vout=number, sequence=0xFFFFFFFD, witness=(b"\1" * 71, b"\2" * 33) if signed else ()
    )
    paid = TxOutput(units=1_000 + number, script=script_of(OURS, "regtest"))
    return Tx(version=2, inputs=(spent,), outputs=(TxOutput(units=5, script=b"\x6a"), paid), lock_time=0)


def block(txs: Sequence[Tx], *, root: bytes | None = None, bits: int = EASY, count: int | None = None) -> bytes:
    """Return a block with its work done."""
    named = merkle_root([double_sha256(tx.base) for tx in txs]) if root is None else root
    head = struct.pack("<i", 4) + bytes(range(32)) + named + struct.pack("<II", 1_700_000_000, bits)
    nonce = next(n for n in range(1000) if double_sha256(head + struct.pack("<I", n))[31] < 0x7F)
    body = compact(len(txs) if count is None else count) + b"".join(tx.raw for tx in txs)
    return head + struct.pack("<I", nonce) + body


def name(raw: bytes) -> str:
    return id_text(double_sha256(raw[:80]))


WHOLE = [coinbase(), *(payment(number, signed=number % 2 == 0) for number in range(1, 6))]


def refused(raw: bytes, *, height: int = HEIGHT) -> str:
    with pytest.raises(ProviderError) as raised:
        read_block(raw, name(raw), height, REGTEST)
    return str(raised.value)


def test_a_whole_block_is_read() -> None:
    raw = block(WHOLE)
    read_one = read_block(raw, name(raw), HEIGHT, REGTEST)

    assert [read_one.txid(place) for place in range(6)] == [tx.txid for tx in WHOLE]
    assert [(one.place, one.vout, one.units) for one in read_one.paid] == [(n, 1, 1_000 + n) for n in range(1, 6)]
    assert {one.script for one in read_one.paid} == {script_of(OURS, "regtest")}
    assert outpoints(read_one.spent) == [((tx.inputs[0].outpoint), place) for place, tx in enumerate(WHOLE)]
    assert (read_one.block.height, read_one.block.parent_height, read_one.size) == (HEIGHT, HEIGHT - 1, len(raw))
    assert read_one.block.parent_hash == id_text(bytes(range(32)))


@pytest.mark.parametrize("left_out", range(1, 6))
def test_a_block_that_leaves_something_out_is_refused(left_out: int) -> None:
    root = merkle_root([double_sha256(tx.base) for tx in WHOLE])

    assert "other transactions" in refused(block([*WHOLE[:left_out], *WHOLE[left_out + 1 :]], root=root))


def test_a_block_that_makes_something_up_is_refused() -> None:
    root = merkle_root([double_sha256(tx.base) for tx in WHOLE])

    assert "other transactions" in refused(block([*WHOLE, payment(9)], root=root))
    assert "other transactions" in refused(block([WHOLE[0], payment(9), *WHOLE[2:]], root=root))


@pytest.mark.parametrize("count", [3, 6, 7])
def test_a_list_with_a_doubled_end_has_the_same_root_and_is_refused(count: int) -> None:
    txs = [coinbase(), *map(payment, range(1, count))]
    ids = [double_sha256(tx.base) for tx in txs]
    # The merkle tree doubles the last hash of an odd row; here the list itself has the double.
    doubled = txs + (txs[-2:] if count == 6 else txs[-1:])

    assert naive_root(ids) == naive_root([double_sha256(tx.base) for tx in doubled])
    assert refused(block(doubled, root=naive_root(ids))) == "a block holds transactions twice"


def naive_root(row: Sequence[bytes]) -> bytes:
    while len(row) > 1:
        row = [*row, row[-1]] if len(row) % 2 else row
        row = [double_sha256(row[place] + row[place + 1]) for place in range(0, len(row), 2)]
    return row[0]


@pytest.mark.parametrize(
    ("txs", "problem"),
    [
        ([payment(1), coinbase()], "made by its first"),
        ([coinbase(), coinbase(HEIGHT + 1)], "made by its first"),
        ([payment(1), payment(2)], "made by its first"),
        ([coinbase(HEIGHT + 1), payment(1)], "another height"),
        ([coinbase(script=b""), payment(1)], "another height"),
    ],
)
def test_coin_is_made_by_the_first_transaction_alone_which_names_its_height(txs: list[Tx], problem: str) -> None:
    assert problem in refused(block(txs))


@pytest.mark.parametrize("height", [1, 16, 17, 127, 128, 255, 256, 32_767, 32_768, 227_931, 900_000])
def test_heights_are_named_as_scripts_write_numbers(height: int) -> None:
    from embit.script import Script  # noqa: PLC0415 - for this test alone

    script = bytes([0x50 + height]) + b"\0" if height <= 16 else None
    raw = block([coinbase(height, script=script)])

    assert read_block(raw, name(raw), height, REGTEST).block.height == height
    assert Script(coinbase(height).inputs[0].script).data[-1] == 0


def test_before_its_day_no_height_is_asked_for() -> None:
    early = headers.Rules(target_max=REGTEST.target_max, retargets=False, names_height_from=HEIGHT + 1)
    raw = block([coinbase(script=b"anything")])

    assert read_block(raw, name(raw), HEIGHT, early).block.height == HEIGHT
    assert "another height" in refused(raw)


def test_a_coinbase_of_two_inputs_is_refused() -> None:
    first = coinbase()
    double = Tx(version=2, inputs=(*first.inputs, *payment(1).inputs), outputs=first.outputs, lock_time=0)

    assert "made by its first" in refused(block([double, payment(2)]))


def test_an_output_above_the_coin_supply_is_refused() -> None:
    one = payment(1)
    rich = Tx(version=2, inputs=one.inputs, outputs=(TxOutput(units=-1, script=b""),), lock_time=0)

    assert "base units" in refused(block([coinbase(), rich]))


def test_a_block_with_more_behind_it_is_refused() -> None:
    assert "goes on" in refused(block(WHOLE) + b"\0")


@settings(deadline=None)
@given(st.integers(80, len(block(WHOLE)) - 1))
def test_a_block_that_is_cut_anywhere_is_refused(end: int) -> None:
    refused(block(WHOLE)[:end])


@pytest.mark.parametrize("count", [0, 5, 7, 252, 65_535, 2**31, 2**64 - 1])
def test_an_invalid_count_is_refused_at_once(count: int) -> None:
    refused(block(WHOLE, count=count))


@pytest.mark.parametrize("size", [2**31, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_script_that_is_longer_than_any_memory_is_cut_short(size: int) -> None:
    raw = block(WHOLE)
    first = payment(1)
    # Before an output that follows, and before the end of one that does not.
    for script in (sized(output.script) for output in first.outputs):
        at = raw.index(first.base) + first.base.index(script)
        assert "cut short" in refused(raw[:at] + b"\xff" + struct.pack("<Q", size) + raw[at + 1 :])
    at = raw.index(first.base) + 4 + 1 + 36
    assert "cut short" in refused(raw[:at] + b"\xff" + struct.pack("<Q", size) + raw[at + 1 :])


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_rubbish_in_a_block_is_refused_and_nothing_else_happens(data: st.DataObject) -> None:
    raw = bytearray(block(WHOLE))
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(80, len(raw) - 1))] = data.draw(st.sampled_from([0, 1, 0xFC, 0xFD, 0xFE, 0xFF]))
    read_one = None
    with contextlib.suppress(ProviderError):
        read_one = read_block(bytes(raw), name(bytes(raw)), HEIGHT, REGTEST)
    # The header covers neither witnesses nor the marker that there are any.
    assert read_one is None or [read_one.txid(place) for place in range(6)] == [tx.txid for tx in WHOLE]


# Headers -------------------------------------------------------------------------------------------------------


def test_the_first_header_there_ever_was_is_proved() -> None:
    genesis = read_header(bytes.fromhex(GENESIS_HEADER), GENESIS, MAIN)

    assert (genesis.parent_hash, genesis.bits, genesis.time.year) == (NOWHERE, 0x1D00FFFF, 2009)
    assert headers.is_first(genesis)


@pytest.mark.parametrize(
    "change",
    [lambda raw: raw[:-1], lambda raw: raw + b"\0", lambda raw: raw[:-1] + b"\0", lambda raw: b"\2" + raw[1:]],
)
def test_a_header_of_another_hash_is_refused(change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ProviderError, match="header of"):
        read_header(change(bytes.fromhex(GENESIS_HEADER)), GENESIS, MAIN)


def test_a_hash_that_took_no_work_is_no_block() -> None:
    raw = bytearray(bytes.fromhex(GENESIS_HEADER))
    raw[79] ^= 1

    with pytest.raises(ProviderError, match="lacks the work"):
        read_header(bytes(raw), name(bytes(raw)), MAIN)


@pytest.mark.parametrize("bits", [0x1D010000, 0x207FFFFF, 0x1D80FFFF, 0x00FFFFFF, 0xFF00FFFF, 0x1D000000, 0])
def test_a_too_easy_or_invalid_target_is_refused(bits: int) -> None:
    with pytest.raises(ProviderError, match="no work is asked"):
        target_of(bits, MAIN)


def test_an_old_easy_target_makes_no_block_of_today() -> None:
    """A forger cannot begin a chain of its own at an old, easy target."""
    # Of the years 2021 and 2024.
    assert target_of(0x170F48E4, TODAY) > target_of(0x17032EEA, TODAY)
    for bits in (0x1D00FFFF, 0x1B0404CB, 0x1900896C):
        assert target_of(bits, MAIN)
        with pytest.raises(ProviderError, match="no work is asked"):
            target_of(bits, TODAY)
    with pytest.raises(ProviderError, match="no work is asked"):
        read_header(bytes.fromhex(GENESIS_HEADER), GENESIS, TODAY)


@pytest.mark.parametrize(
    ("bits", "target"),
    [(0x1B0404CB, 0x404CB << 192), (0x1D00FFFF, 0xFFFF << 208), (0x03123456, 0x123456), (0x02123456, 0x1234)],
)
def test_a_target_is_read_of_its_short_form(bits: int, target: int) -> None:
    assert target_of(bits, MAIN) == target


def header(bits: int) -> headers.Header:
    genesis = read_header(bytes.fromhex(GENESIS_HEADER), GENESIS, MAIN)
    return headers.Header(
        hash=genesis.hash,
        parent_hash=genesis.parent_hash,
        merkle_root=genesis.merkle_root,
        time=genesis.time,
        bits=bits,
    )


@pytest.mark.parametrize(
    ("height", "before", "now", "follows"),
    [
        (2015, 0x1B0404CB, 0x1B0404CB, True),
        (2015, 0x1B0404CB, 0x1B0404CA, False),
        (2016, 0x1B0404CB, 0x1B0404CA, True),
        # Four times as easy or hard, as the short form rounds it, and no more.
        (2016, 0x1B0404CB, 0x1B10132C, True),
        (2016, 0x1B0404CB, 0x1B10132D, False),
        (2016, 0x1B0404CB, 0x1B010132, True),
        (2016, 0x1B0404CB, 0x1B010000, False),
        (2017, 0x1B0404CB, 0x1B0404CA, False),
    ],
)
def test_the_work_changes_every_two_weeks_and_by_four_at_most(
    height: int, before: int, now: int, *, follows: bool
) -> None:
    if follows:
        check_follows(header(now), height, before, MAIN)
    else:
        with pytest.raises(ProviderError, match="another work"):
            check_follows(header(now), height, before, MAIN)


def test_on_regtest_it_never_changes() -> None:
    with pytest.raises(ProviderError, match="another work"):
        check_follows(header(0x207FFFFE), 2016, EASY, REGTEST)


def test_no_transactions_have_no_root() -> None:
    with pytest.raises(ProviderError, match="without transactions"):
        merkle_root([])


@settings(deadline=None)
@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=20, unique=True))
def test_the_root_is_that_of_the_plain_way(ids: list[bytes]) -> None:
    assert merkle_root(ids) == naive_root(ids)
    assert id_bytes(id_text(ids[0])) == ids[0]
