"""Measures reading a full block of Solana, and matching its recipients among millions. Called by bench.scan.

One block of 525 transactions, a fifth of them transfers of an offered token, is written as a node shows it, in some
5 MB, and served by a process of its own. Times are this program's processor time, inflating and matching included.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from functools import partial
from statistics import median
from typing import Any, Final

from bench.chains.known import Known
from bench.chains.serving import serve, served
from bench.measuring.timed import timed
from chains.solana import programs
from chains.solana.nodes import solana_providers
from chains.solana.reader import SolanaReader
from core.addresses import base58
from core.catalogue.catalogue import load_catalogue

NETWORK: Final = "solana"
TRANSACTIONS: Final = 525
TOKEN_TRANSFERS: Final = 105
# Accounts of programs that trade, as in most transactions.
OTHERS: Final = 28
OTHER_HOLDINGS: Final = 8
OURS_IN_A_BLOCK: Final = 2
FIRST: Final = 460_000_000
# A slot of 200 ms, read at four times real time.
GOAL_MS: Final = 50


def measure_blocks(count: int) -> None:
    """Print the processor time of a block in this program."""
    catalogue = load_catalogue("development")
    network, pairs = catalogue.networks[NETWORK], catalogue.pairs_on(NETWORK)
    chain = Chain(count)
    with served("bench.chains.solana", count) as url:
        reader = SolanaReader(pairs, solana_providers(network, [url], timeout_s=60))
        known, samples = Known(chain.ours), []

        def paid_after(slot: int) -> int:
            (scanned,) = reader.scan(slot - 1, slot, known)
            return len(scanned.transfers)

        # The first block loads libraries and opens the connection.
        assert paid_after(FIRST + 1) == OURS_IN_A_BLOCK
        for slot in range(FIRST + 2, FIRST + count):
            _, cpu_s, paid = timed(partial(paid_after, slot))
            assert paid == OURS_IN_A_BLOCK
            samples.append(1000 * cpu_s)
    took_ms = median(samples)
    print(
        f"{count} blocks of {TRANSACTIONS} transactions, {TOKEN_TRANSFERS} of them token transfers,"
        f" {chain.size / 1e6:.1f} MB each, {chain.packed / 1e6:.1f} MB packed:"
    )
    print(f"  each read and matched in {took_ms:.1f} ms of processor time, at best {min(samples):.1f} ms")
    print(f"  goal at most {GOAL_MS} ms: {'met' if took_ms <= GOAL_MS else 'not met'}")


class Chain:
    """Blocks of the same transactions, served to one reader."""

    def __init__(self, count: int) -> None:
        self._chance = random.Random(20261128)  # noqa: S311
        self._count = count
        self._mint = next(
            str(pair.contract) for pair in load_catalogue("development").pairs_on(NETWORK) if pair.contract
        )
        self.ours = [self._key() for _ in range(OURS_IN_A_BLOCK)]
        entries = [self._entry(place) for place in range(TRANSACTIONS)]
        self._entries = json.dumps(entries)
        self.size = len(self._entries)
        self.packed = len(gzip.compress(self._entries.encode(), 6))

    def answer(self, method: str, params: list[Any]) -> str:
        """Return the result of a question, as text."""
        if method == "getGenesisHash":
            return json.dumps(load_catalogue("development").networks[NETWORK].chain_identity)
        if method == "getSlot":
            return str(FIRST + self._count)
        if method == "getBlocks":
            return json.dumps(list(range(params[0], min(params[1], FIRST + self._count) + 1)))
        slot = int(params[0])
        head = {
            "blockHeight": slot - 22_000_000, "blockTime": 1_795_000_000 + slot - FIRST, "blockhash": self._hash(slot),
            "parentSlot": slot - 1, "previousBlockhash": self._hash(slot - 1),
        }  # fmt: skip
        if params[1]["transactionDetails"] == "none":
            return json.dumps(head)
        return json.dumps(head)[:-1] + f', "transactions": {self._entries}}}'

    def _hash(self, slot: int) -> str:
        return base58.encode(slot.to_bytes(32, "big").replace(b"\0", b"\1"))

    def _key(self) -> str:
        return base58.encode(b"\1" + self._chance.randbytes(31))

    def _entry(self, place: int) -> dict[str, Any]:
        payer = self._key()
        keys = [payer, *(self._key() for _ in range(OTHERS))]
        before = [self._chance.randrange(10**9, 10**12) for _ in keys]
        after = [before[0] - 5_000 - 7, *before[1:]]
        holdings = [self._holding(at, self._key(), self._key()) for at in range(1, 1 + OTHER_HOLDINGS)]
        paid = [*holdings]
        if place < TOKEN_TRANSFERS:
            owner = self.ours[0] if place == 0 else self._key()
            keys.append(programs.associated(owner, self._mint))
            before.append(0)
            after.append(0)
            paid.append(self._holding(len(keys) - 1, owner, self._mint))
        else:
            keys.append(self.ours[1] if place == TRANSACTIONS - 1 else self._key())
            before.append(10**9)
            after.append(10**9 + 7)
        return {
            "transaction": {
                "signatures": [base58.encode(b"\1" + self._chance.randbytes(63))],
                "accountKeys": [
                    {"pubkey": key, "signer": at == 0, "source": "transaction", "writable": True}
                    for at, key in enumerate(keys)
                ],
            },
            "meta": {
                "err": None, "status": {"Ok": None}, "fee": 5_000, "preBalances": before, "postBalances": after,
                "preTokenBalances": holdings, "postTokenBalances": paid,
            },
            "version": 0,
        }  # fmt: skip

    def _holding(self, place: int, owner: str, mint: str) -> dict[str, Any]:
        return {
            "accountIndex": place, "mint": mint, "owner": owner, "programId": programs.TOKEN,
            "uiTokenAmount": {"amount": "1000007", "decimals": 6, "uiAmount": 1.000007, "uiAmountString": "1.000007"},
        }  # fmt: skip


if __name__ == "__main__":
    serve(Chain(int(sys.argv[1])).answer)
