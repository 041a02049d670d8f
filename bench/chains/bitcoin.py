"""Measures proving and matching a full block of bitcoin. Called by bench.scan --network bitcoin.

The block is made here, of 4,000 payments with two inputs and three outputs each. All pay key hashes, which takes
longest, since each address has to be encoded. The block is in hexadecimal digits, as nodes return it.
"""

from __future__ import annotations

import random
import struct
import time
from statistics import median
from typing import Final

from bench.chains.known import Known
from chains.bitcoin.block import merkle_root, read_block
from chains.bitcoin.headers import RULES
from chains.bitcoin.scan import Matcher
from chains.bitcoin.scripts import KEY_HASH, key_hash_address
from chains.bitcoin.transactions import FINAL, NOWHERE, Tx, TxInput, TxOutput, compact, double_sha256, id_text, unhexed

CHAIN: Final = "regtest"
HEIGHT: Final = 900_000
TRANSACTIONS: Final = 4_000
EASY: Final = 0x207FFFFF
GOAL_MS: Final = 100
ROUNDS: Final = 15


def measure_blocks(rounds: int = ROUNDS) -> float:
    """Print the processor time of one block in this program, and return it in milliseconds."""
    txs = payments(random.Random(20261123))  # noqa: S311
    raw = block(txs)
    text, wanted = raw.hex(), id_text(double_sha256(raw[:80]))
    last = txs[-1]
    ours = Known([key_hash_address(last.outputs[-1].script, CHAIN)], [last.inputs[0].outpoint])
    samples = []
    for _ in range(rounds):
        began = time.process_time()
        match = Matcher("BTC", CHAIN).match(read_block(unhexed(text), wanted, HEIGHT, RULES[CHAIN]), ours)
        samples.append(1000 * (time.process_time() - began))
        assert len(match.transfers) == len(match.spent) == 1
    took_ms = median(samples)
    print(f"a block of {len(raw) / 1e6:.2f} MB, {len(txs):,} transactions, {3 * len(txs):,} outputs to keys' hashes:")
    print(f"  proved and matched in {took_ms:.0f} ms of processor time, at best {min(samples):.0f} ms")
    print(f"  goal at most {GOAL_MS} ms: {'met' if took_ms <= GOAL_MS else 'not met'}")
    return took_ms


def payments(chance: random.Random) -> list[Tx]:
    """Return a coinbase and payments."""
    named = compact(3) + HEIGHT.to_bytes(3, "little")
    maker = TxInput(txid=NOWHERE, vout=FINAL, sequence=FINAL, script=named, witness=(bytes(32),))
    coinbase = Tx(version=2, inputs=(maker,), outputs=(TxOutput(units=1, script=b"\x51"),), lock_time=0)
    return [coinbase, *(payment(chance) for _ in range(TRANSACTIONS))]


def payment(chance: random.Random) -> Tx:
    spent = (
        TxInput(
            txid=chance.randbytes(32).hex(),
            vout=chance.randrange(4),
            sequence=0xFFFFFFFD,
            witness=(chance.randbytes(71), chance.randbytes(33)),
        )
        for _ in range(2)
    )
    paid = (TxOutput(units=chance.randrange(1, 10**9), script=KEY_HASH + chance.randbytes(20)) for _ in range(3))
    return Tx(version=2, inputs=tuple(spent), outputs=tuple(paid), lock_time=0)


def block(txs: list[Tx]) -> bytes:
    """Return a block with its proof of work, as regtest requires it."""
    root = merkle_root([double_sha256(tx.base) for tx in txs])
    head = struct.pack("<i", 4) + bytes(32) + root + struct.pack("<II", 1_700_000_000, EASY)
    heads = (head + struct.pack("<I", nonce) for nonce in range(1000))
    done = next(one for one in heads if double_sha256(one)[31] <= 0x7E)
    return done + compact(len(txs)) + b"".join(tx.raw for tx in txs)
