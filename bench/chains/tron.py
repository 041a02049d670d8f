"""Measures proving and matching a block of TRON, and the speed of catching up. Called by bench.scan.

Blocks of 300 transactions, half of them token transfers to new addresses, are made on the development chain and read
over HTTP by the gateway's adapter. Times are this program's processor time.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from bench.chains.known import Known
from bench.measuring.timed import timed
from chains.base import Block
from chains.net.rest import RestNode
from chains.tron import wire as tron_wire
from chains.tron.nodes import tron_providers
from chains.tron.reader import TronReader
from core.catalogue.catalogue import load_catalogue
from devstack import chains
from devstack.contracts.code import PLAIN
from devstack.supervise.leash import Leash
from devstack.supervise.ports import free_port
from devstack.tron import wire
from devstack.tron.buyer import FEE_LIMIT, LIFE_MS, Buyer, calldata
from devstack.tron.node import TronNode

NETWORK: Final = "tron"
TRANSACTIONS: Final = 300
TOKEN_TRANSFERS: Final = 150
OURS_IN_A_BLOCK: Final = 2
GOAL_MS: Final = 30
RICHES: Final = 10**15
BUYER_KEY: Final = "b1" * 32


def measure_blocks(count: int) -> None:
    """Print the processor time of a block in this program, and the number of blocks read in a second."""
    catalogue = load_catalogue("development")
    network, pairs = catalogue.networks[NETWORK], catalogue.pairs_on(NETWORK)
    with chain() as node:
        first, ours = make_blocks(node, count)
        reader = TronReader(network, pairs, tron_providers(network, [node.url], timeout_s=60))
        known, samples, walls = Known(ours), [], []

        def paid_in(height: int) -> int:
            (scanned,) = reader.scan(height - 1, first + count, known)
            return len(scanned.transfers)

        # The first block loads libraries and opens the connection.
        assert paid_in(first) == OURS_IN_A_BLOCK
        for height in range(first + 1, first + count):
            wall_s, cpu_s, paid = timed(partial(paid_in, height))
            assert paid == OURS_IN_A_BLOCK
            samples.append(1000 * cpu_s)
            walls.append(wall_s)
    took_ms, pace = median(samples), len(walls) / sum(walls)
    print(f"{count} blocks of {TRANSACTIONS} transactions, {TOKEN_TRANSFERS} of them token transfers:")
    print(f"  each proved and matched in {took_ms:.1f} ms of processor time, at best {min(samples):.1f} ms")
    print(f"  goal at most {GOAL_MS} ms: {'met' if took_ms <= GOAL_MS else 'not met'}")
    chains_pace = 1000 / load_catalogue("production").networks[NETWORK].block_time_ms
    print(f"  catching up: {pace:.1f} blocks/s on the clock, {pace / chains_pace:.0f} times as fast as the chain grows")


@contextlib.contextmanager
def chain() -> Iterator[TronNode]:
    """Start a chain that mines on request."""
    network = load_catalogue("development").networks[NETWORK]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-bench-")))
        leash = Leash()
        stack.callback(leash.release)
        program = chains.development(network.family).find({}, folder)
        node = TronNode(program, folder, network=network, port=free_port(), leash=leash, block_time_s=0)
        stack.callback(node.stop)
        node.start()
        yield node


def make_blocks(node: TronNode, count: int) -> tuple[int, list[str]]:
    """Fill blocks; return the height of the first, and our addresses, two of each block."""
    rest, buyer = RestNode(node.url, timeout_s=60), Buyer(BUYER_KEY)
    token = next(pair for pair in load_catalogue("development").pairs_on(NETWORK) if pair.contract is not None)
    _act(rest, "coin", address=buyer.address, units=RICHES)
    balances = {buyer.address: RICHES}
    _act(rest, "token", address=token.contract, code=PLAIN, symbol="T", decimals=6, balances=balances, penalty_pct=0)
    first = _mine(rest) + 1
    chance, ours = random.Random(20261124), []  # noqa: S311
    for _ in range(count):
        recipients = [chance.randbytes(wire.ADDRESS_BYTES) for _ in range(TRANSACTIONS)]
        # One receives TRX and one the token.
        ours += [wire.shown(recipients[place]) for place in (0, TRANSACTIONS - 1)]
        newest = tron_wire.newest(rest.ask("wallet/getblock", {}, tron_wire.Header))
        for place, to in enumerate(recipients):
            _pay(rest, newest, buyer, to, contract=str(token.contract) if place < TOKEN_TRANSFERS else None)
        _mine(rest)
    return first, ours


def _pay(rest: RestNode, newest: Block, buyer: Buyer, to: bytes, *, contract: str | None) -> None:
    now_ms = round(1000 * newest.time.timestamp())
    owner = wire.raw_of(buyer.address)
    made = wire.transfer(owner, to, 1)
    if contract is not None:
        made = wire.call(owner, wire.raw_of(contract), calldata("transfer(address,uint256)", to, 1))
    raw = wire.raw_data(
        made, block_id=newest.hash, now_ms=now_ms, expiration_ms=now_ms + LIFE_MS,
        fee_limit=FEE_LIMIT if contract is not None else 0,
    )  # fmt: skip
    answer = rest.ask("wallet/broadcasthex", {"transaction": buyer.sign(raw).hex()}, dict[str, object])
    assert answer["result"], answer


def _act(rest: RestNode, name: str, **arguments: object) -> None:
    rest.ask("development/act", {"act": name, "arguments": arguments}, dict[str, object])


def _mine(rest: RestNode) -> int:
    return rest.ask("development/mine", {}, dict[str, int])["height"]
