"""A provider between the gateway and a real node that lies about blocks and transactions, as a test wants.

A forged chain is consistent: each block has the work that its header states, and a forged parent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chains.bitcoin.transactions import Tx, TxOutput, id_bytes, id_text
from devstack.bitcoin.facade.blocks import HEADER, WITNESS_ROOT, Block, merkle_root, read_block, witness_root, worked
from tests.peers.json_rpc_node import Raw, Refusal
from tests.peers.lying_rpc import LyingRpc

Change = Callable[[int, Sequence[Tx]], Sequence[Tx]]
# Below this depth a forged chain shares the real chain's blocks.
REACH = 150
OUT_OF_RANGE = Refusal(-8, "Block height out of range")


class LyingBitcoin(LyingRpc):
    """A provider that is honest until a test changes it."""

    def __init__(self, upstream: str, *, key: str = "secret-key") -> None:
        super().__init__(upstream, key=key)
        # Methods whose question the node itself would refuse.
        self.asks_itself: set[str] = set()

    def read(self, path: str, body: Any) -> dict[str, Any]:
        """Return a request, or many as one of their method."""
        del path
        return {"method": body[0]["method"], "batch": body} if isinstance(body, list) else body

    def answer(self, request: Mapping[str, Any]) -> Raw:
        if "batch" not in request:
            return super().answer(request)
        answers = [super(LyingBitcoin, self).answer(one) for one in request["batch"]]
        if self.failure is not None:
            return answers[0]
        return Raw(b"[" + b",".join(answer.body for answer in answers) + b"]")

    def lag(self, blocks: int) -> None:
        """Know nothing of the newest blocks."""

        def tip() -> int:
            return int(str(self._truth("getblockcount", []))) - blocks

        self.lies |= {
            "getblockcount": lambda _truth, _params: tip(),
            "getbestblockhash": lambda _truth, _params: self._truth("getblockhash", [tip()]),
            "getblockhash": lambda truth, params: truth if params[0] <= tip() else OUT_OF_RANGE,
            "gettxout": Refusal(-1, "not told"),
        }

    def cut(self, change: Change) -> None:
        """Show other transactions in blocks whose headers stay."""

        def block(truth: str, params: list[Any]) -> object:
            if params[1] != 0:
                return truth
            read_one = read_block(bytes.fromhex(truth))
            return replace(read_one, txs=tuple(change(0, read_one.txs))).raw.hex()

        self.lies["getblock"] = block

    def forge(self, change: Change) -> None:
        """Show a chain of its own from the first block that the change alters."""
        forged: dict[str, Block] = {}
        names: dict[str, str] = {}

        first = max(1, int(str(self._truth("getblockcount", []))) - REACH)

        def of(height: int, true_hash: str) -> str:
            """Return the forged block at this place, after those below it."""
            untold: list[tuple[int, str, Block]] = []
            name, place = true_hash, height
            while name not in names and place >= first:
                read_one = read_block(bytes.fromhex(str(self._truth("getblock", [name, 0]))))
                untold.append((place, name, read_one))
                name, place = id_text(read_one.header.previous), place - 1
            for place, name, read_one in reversed(untold):
                parent = id_text(read_one.header.previous)
                altered = sealed(read_one, change(place, read_one.txs), names.get(parent, parent))
                names[name] = altered.header.hash
                forged[altered.header.hash] = altered
            return names.get(true_hash, true_hash)

        def at(height: int) -> object:
            return of(height, str(self._truth("getblockhash", [height])))

        def block(truth: Any, params: list[Any]) -> object:
            forgery = forged.get(params[0])
            return truth if forgery is None or params[1] != 0 else forgery.raw.hex()

        def header(truth: Any, params: list[Any]) -> object:
            forgery = forged.get(params[0])
            if forgery is None:
                return truth
            if params[1:] == [False]:
                return forgery.header.raw.hex()
            original = next(true for true, name in names.items() if name == params[0])
            return self._truth("getblockheader", [original]) | {"hash": params[0]}  # type: ignore[operator]

        self.asks_itself |= {"getblock", "getblockheader"}
        self.lies |= {
            "getblockhash": lambda truth, params: truth if params[0] == 0 else at(params[0]),
            "getbestblockhash": lambda _truth, _params: at(int(str(self._truth("getblockcount", [])))),
            "getblock": block,
            "getblockheader": header,
        }

    def _truth(self, method: str, params: list[Any]) -> object:
        truth = super()._truth(method, params)
        return None if isinstance(truth, Refusal) and method in self.asks_itself else truth


def sealed(block: Block, txs: Sequence[Tx], previous: str) -> Block:
    """Return a block of other transactions upon another one, worked out; itself where nothing is another."""
    if tuple(txs) == block.txs and id_bytes(previous) == block.header.previous:
        return block
    coinbase, others = txs[0], tuple(txs[1:])
    kept = tuple(output for output in coinbase.outputs if not output.script.startswith(WITNESS_ROOT))
    root = TxOutput(units=0, script=WITNESS_ROOT + witness_root([tx.raw for tx in others]))
    all_txs = (replace(coinbase, outputs=(*kept, root)), *others)
    header = replace(
        block.header, previous=id_bytes(previous), merkle_root=merkle_root([tx.base for tx in all_txs]), nonce=0
    )
    assert len(header.raw) == HEADER.size
    return Block(header=worked(header), txs=all_txs)
