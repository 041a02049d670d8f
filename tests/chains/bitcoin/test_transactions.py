"""Transactions as they travel: published ones, those that another library writes, and rubbish."""

import contextlib

import pytest
from embit.transaction import Transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from chains.base import ProviderError
from chains.bitcoin import transactions as bitcoin_transactions
from chains.bitcoin.transactions import Tx, TxInput, TxOutput

# The coinbase of the first block there ever was.
GENESIS = (
    "01000000010000000000000000000000000000000000000000000000000000000000000000ffffffff4d04ffff001d0104455468652054696d"
    "65732030332f4a616e2f32303039204368616e63656c6c6f72206f6e206272696e6b206f66207365636f6e64206261696c6f757420666f72"
    "2062616e6b73ffffffff0100f2052a01000000434104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6"
    "bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac00000000"
)
GENESIS_ID = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b"
# The signed example of BIP-143: an input of the older kind, and one with a witness.
SIGNED = (
    "01000000000102fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f00000000494830450221008b9d1dc26ba6a9"
    "cb62127b02742fa9d754cd3bebf337f7a55d114c8e5cdd30be022040529b194ba3f9281a99f2b1c0a19c0489bc22ede944ccf4ecbab4cc61"
    "8ef3ed01eeffffffef51e1b804cc89d182d279655c3aa89e815b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202cb2060000"
    "00001976a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac9093510d000000001976a9143bde42dbee7e4dbe6a21b2d50ce2f016"
    "7faa815988ac000247304402203609e17b84f6a7d30c80bfa610b5b4542f32a8a0d5447a12fb1366d7f01cc44a0220573a954c4518331561"
    "406f90300e8f3358f51928d43c212a8caed02de67eebee0121025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee"
    "635711000000"
)

hashes = st.binary(min_size=32, max_size=32).map(bytes.hex)
inputs = st.builds(
    TxInput,
    txid=hashes,
    vout=st.integers(0, 2**32 - 1),
    sequence=st.integers(0, 2**32 - 1),
    script=st.binary(max_size=300),
    witness=st.lists(st.binary(max_size=80), max_size=3).map(tuple),
)
outputs = st.builds(TxOutput, units=st.integers(0, bitcoin_transactions.UNITS_MAX), script=st.binary(max_size=300))
transactions = st.builds(
    Tx,
    version=st.integers(-(2**31), 2**31 - 1),
    inputs=st.lists(inputs, min_size=1, max_size=4).map(tuple),
    outputs=st.lists(outputs, min_size=1, max_size=4).map(tuple),
    lock_time=st.integers(0, 2**32 - 1),
)


def test_the_first_transaction_has_its_published_id() -> None:
    tx = bitcoin_transactions.read_hex(GENESIS)

    assert (tx.txid, tx.is_coinbase, tx.outputs[0].units) == (GENESIS_ID, True, 50 * 10**8)
    assert tx.raw.hex() == GENESIS
    assert tx.weight == 4 * len(tx.raw)


def test_a_published_transaction_with_a_witness_is_read_and_written() -> None:
    tx = bitcoin_transactions.read_hex(SIGNED)
    other = Transaction.from_string(SIGNED)

    assert tx.raw.hex() == SIGNED
    assert tx.txid == other.txid().hex()
    assert [one.outpoint for one in tx.inputs] == [(one.txid.hex(), one.vout) for one in other.vin]
    assert [len(one.witness) for one in tx.inputs] == [0, 2]
    assert (tx.lock_time, tx.is_coinbase) == (17, False)
    assert (tx.weight, tx.vsize) == (3 * 233 + 343, 261)


@settings(deadline=None)
@given(transactions)
def test_written_bytes_are_read_again_with_another_librarys_id(tx: Tx) -> None:
    assert bitcoin_transactions.read(tx.raw) == tx
    assert Transaction.parse(tx.raw).txid().hex() == tx.txid
    assert 4 * (tx.vsize - 1) < tx.weight <= 4 * tx.vsize


@settings(deadline=None)
@given(transactions, st.data())
def test_truncated_or_longer_bytes_are_no_transaction(tx: Tx, data: st.DataObject) -> None:
    raw = tx.raw
    for rubbish in (raw[: data.draw(st.integers(0, len(raw) - 1))], raw + b"\0"):
        with pytest.raises(ProviderError):
            bitcoin_transactions.read(rubbish)


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_rubbish_is_refused_and_nothing_else_happens(raw: bytes) -> None:
    with contextlib.suppress(ProviderError):
        assert bitcoin_transactions.read(raw).raw == raw


@settings(deadline=None)
@given(transactions, st.data())
def test_a_changed_byte_gives_another_transaction_or_an_error(tx: Tx, data: st.DataObject) -> None:
    raw = bytearray(tx.raw)
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(ProviderError):
        assert bitcoin_transactions.read(bytes(raw)) != tx


@pytest.mark.parametrize("count", ["fd0000", "fdffff", "feffffffff", "ffffffffffffffffff"])
def test_a_count_beyond_what_follows_costs_nothing(count: str) -> None:
    with pytest.raises(ProviderError):
        bitcoin_transactions.read(bytes.fromhex("01000000" + count + "00" * 60))


@pytest.mark.parametrize("units", [-1, bitcoin_transactions.UNITS_MAX + 1])
def test_more_coin_than_there_is_is_no_output(units: int) -> None:
    tx = bitcoin_transactions.read_hex(SIGNED)
    strange = Tx(version=1, inputs=tx.inputs, outputs=(TxOutput(units=units, script=b""),), lock_time=0)

    with pytest.raises(ProviderError, match="base units"):
        bitcoin_transactions.read(strange.raw)


def test_a_count_that_is_written_longer_than_it_need_be_is_refused() -> None:
    one = bitcoin_transactions.read_hex(GENESIS).raw
    assert one[4] == 1

    with pytest.raises(ProviderError, match="as nodes write them"):
        bitcoin_transactions.read(one[:4] + b"\xfd\x01\x00" + one[5:])


@pytest.mark.parametrize("text", ["0", "zz", "01 00", "é"])
def test_a_text_that_is_not_hexadecimal_is_refused(text: str) -> None:
    with pytest.raises(ProviderError):
        bitcoin_transactions.read_hex(text)


@pytest.mark.parametrize("text", ["", "00", "zz" * 32, GENESIS_ID.upper(), GENESIS_ID + "00"])
def test_an_id_is_sixty_four_small_digits(text: str) -> None:
    with pytest.raises(ValueError, match=r"hash|hexadecimal"):
        bitcoin_transactions.id_bytes(text)


def test_a_changed_witness_keeps_the_id_and_a_changed_old_script_does_not() -> None:
    tx = bitcoin_transactions.read_hex(SIGNED)
    old, new = tx.inputs
    rewitnessed = TxInput(txid=new.txid, vout=new.vout, sequence=new.sequence, witness=(b"\1", *new.witness[1:]))
    rescripted = TxInput(txid=old.txid, vout=old.vout, sequence=old.sequence, script=b"\0" + old.script)

    same = Tx(version=tx.version, inputs=(old, rewitnessed), outputs=tx.outputs, lock_time=tx.lock_time)
    other = Tx(version=tx.version, inputs=(rescripted, new), outputs=tx.outputs, lock_time=tx.lock_time)

    assert same.raw != tx.raw
    assert same.txid == tx.txid
    assert other.txid != tx.txid


@pytest.mark.parametrize("number", [0, 252, 253, 65_535, 65_536, 2**32 - 1, 2**32])
def test_a_count_is_written_as_short_as_it_can_be(number: int) -> None:
    written = bitcoin_transactions.compact(number)

    assert bitcoin_transactions.read_compact(written, 0) == (number, len(written))
    assert len(written) == {0: 1, 252: 1, 253: 3, 65_535: 3, 65_536: 5, 2**32 - 1: 5, 2**32: 9}[number]
