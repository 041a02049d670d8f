"""Measures reading a busy master block of TON, and matching its recipients among millions. Called by bench.scan.

Sixteen shards of a hundred transactions each, a fifth of them jettons, are made by TON's own code, and served by a
process of its own. Times are this program's processor time, inflating and matching included.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import sys
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.chains.known import Known
from bench.chains.serving import serve, served
from bench.measuring.timed import timed
from chains.ton import messages
from chains.ton.nodes import ton_providers
from chains.ton.reader import TonReader
from chains.ton.transfers import comment
from core.catalogue.catalogue import load_catalogue
from devstack.ton import jettons
from devstack.ton.accounts import Accounts
from devstack.ton.blocks import BASECHAIN, MASTERCHAIN, WHOLE, BlockId, MasterBlock, Ran, block_id, is_within
from devstack.ton.engine import Engine
from devstack.ton.library import find_library
from devstack.ton.sending import sent_by
from devstack.ton.shapes import block_json, master_header_json, transaction_json, unsigned

NETWORK: Final = "ton"
SHARDS: Final = tuple((2 * place + 1) << 59 for place in range(16))
TRANSACTIONS: Final = 100
JETTON_TRANSFERS: Final = 20
FIRST: Final = 60_000_000
BEGAN: Final = 1_795_000_000
OURS_IN_A_BLOCK: Final = 2
PAYER: Final = "0:" + "77" * 32
# A master block of 400 ms, read at three times real time.
GOAL_MS: Final = 133


def measure_blocks(count: int) -> None:
    """Print the processor time of a master block in this program."""
    catalogue = load_catalogue("development")
    network, pairs = catalogue.networks[NETWORK], catalogue.pairs_on(NETWORK)
    chain = Chain(count)
    with served("bench.chains.ton", count) as url:
        reader = TonReader(pairs, ton_providers(network, [url], timeout_s=60))
        known, samples = Known(chain.ours), []

        def paid_after(height: int) -> int:
            (scanned,) = reader.scan(height - 1, height, known)
            return len(scanned.transfers)

        # The first block loads libraries and opens the connections.
        assert paid_after(FIRST + 1) == OURS_IN_A_BLOCK
        for height in range(FIRST + 2, FIRST + count):
            _, cpu_s, paid = timed(partial(paid_after, height))
            assert paid == OURS_IN_A_BLOCK
            samples.append(1000 * cpu_s)
    took_ms = median(samples)
    print(
        f"{count} master blocks of {len(SHARDS)} shards of {TRANSACTIONS} transactions, {JETTON_TRANSFERS} of them"
        f" jettons, {chain.size / 1e6:.1f} MB each, {chain.packed / 1e6:.1f} MB packed:"
    )
    print(f"  each read and matched in {took_ms:.1f} ms of processor time, at best {min(samples):.1f} ms")
    print(f"  goal at most {GOAL_MS} ms: {'met' if took_ms <= GOAL_MS else 'not met'}")


class Chain:
    """Master blocks that add the same transactions, served to one reader."""

    def __init__(self, count: int) -> None:
        self._chance = random.Random(20261128)  # noqa: S311
        self._accounts = Accounts(Engine(find_library(os.environ, Path(".sluice") / "cache")))
        self._count = count
        owners = self._owners()
        coins = {shard: [self._address(shard) for _ in range(TRANSACTIONS - JETTON_TRANSFERS)] for shard in SHARDS}
        self.ours = [coins[SHARDS[0]][0], owners[SHARDS[-1]][0]]
        self._entries = {shard: self._transactions(coins[shard], owners[shard]) for shard in SHARDS}
        self.size = sum(map(len, self._entries.values()))
        self.packed = sum(len(gzip.compress(text.encode(), 6)) for text in self._entries.values())

    def answer(self, method: str, asked: dict[str, Any]) -> str:
        """Return the result of a question, as text."""
        if method == "getMasterchainInfo":
            identity = load_catalogue("development").networks[NETWORK].chain_identity
            first = block_json(_master(0)) | {"root_hash": identity}
            return json.dumps({"last": block_json(_master(FIRST + self._count)), "init": first})
        seqno = int(asked["seqno"])
        if method == "shards":
            return json.dumps({"shards": [block_json(_block(BASECHAIN, shard, seqno)) for shard in SHARDS]})
        if method == "getBlockHeader" and int(asked["workchain"]) == MASTERCHAIN:
            block = MasterBlock(id=_master(seqno), previous=_master(seqno - 1), time=BEGAN + seqno - FIRST, shards=())
            return json.dumps(master_header_json(block))
        shard = unsigned(asked["shard"])
        head = {"id": block_json(_block(BASECHAIN, shard, seqno)), "req_count": TRANSACTIONS, "incomplete": False}
        return json.dumps(head)[:-1] + f', "transactions": {self._entries[shard]}}}'

    def _address(self, shard: int) -> str:
        first = (shard & shard - 1) >> 56 | self._chance.randrange(16)
        return f"0:{first:02x}{self._chance.randbytes(31).hex()}"

    def _owners(self) -> dict[int, list[str]]:
        """Return owners by the shards in which their wallets of jettons are."""
        owners: dict[int, list[str]] = {shard: [] for shard in SHARDS}
        while min(map(len, owners.values())) < JETTON_TRANSFERS:
            owner = f"0:{self._chance.randbytes(32).hex()}"
            shard = next(shard for shard in SHARDS if is_within(shard, jettons.wallet(owner)))
            owners[shard].append(owner)
        return {shard: listed[:JETTON_TRANSFERS] for shard, listed in owners.items()}

    def _transactions(self, coins: list[str], owners: list[str]) -> str:
        text = comment("order 1000000")
        sent = [sent_by(PAYER, messages.internal(each, 10**9, bounce=False, body=text)) for each in coins]
        sent += [jettons.transferred(PAYER, each, 10**6, query_id=7) for each in owners]
        ran = [Ran(*self._accounts.run(message, now=BEGAN)) for message in sent]
        ordered = sorted(ran, key=lambda each: each.transaction.address)
        return json.dumps([transaction_json(each) for each in ordered])


def _block(workchain: int, shard: int, seqno: int) -> BlockId:
    return block_id(workchain, shard, seqno, [hashlib.sha256(b"bench").digest()])


def _master(seqno: int) -> BlockId:
    return _block(MASTERCHAIN, WHOLE, seqno)


if __name__ == "__main__":
    serve(Chain(int(sys.argv[1])).answer)
