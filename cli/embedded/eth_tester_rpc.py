"""Serves a chain of cli.embedded.pyevm_chain as a node does: JSON-RPC over HTTP on loopback, a block every second.

Started as a program by cli.embedded.eth_tester. It knows the methods that the gateway and its development stack use.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eth.exceptions import VMError

from cli.embedded.ports import LOOPBACK
from cli.embedded.pyevm_chain import GAS_LIMIT, ZERO_ADDRESS, PyEvmChain, RefusedError
from cli.embedded.pyevm_json import Json, as_hex, block_json, matches, receipts_json, transaction_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# As anvil with two slots in an epoch: the safe block is two behind the head, the finalized one four.
DEPTHS: Final = {"latest": 0, "pending": 0, "safe": 2, "finalized": 4}
TIP_WEI: Final = 10**9
BODY_BYTES_MAX: Final = 4 * 1024 * 1024
RANGE_MAX: Final = 10_000

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
REFUSED: Final = -32000
REVERTED: Final = 3


class Node:
    """The methods, by their JSON-RPC names in `methods`. Each is given the request's parameters."""

    def __init__(self, chain: PyEvmChain) -> None:
        self._chain = chain
        self.methods: Mapping[str, Callable[..., Any]] = {
            "eth_chainId": lambda: hex(chain.chain_id),
            "eth_blockNumber": lambda: hex(chain.height),
            "eth_getBlockByNumber": self._block_by_number,
            "eth_getBlockByHash": self._block_by_hash,
            "eth_getBlockReceipts": self._block_receipts,
            "eth_getLogs": self._logs,
            "eth_getTransactionByHash": self._transaction,
            "eth_getTransactionReceipt": self._receipt,
            "eth_sendRawTransaction": lambda raw: as_hex(chain.send(_bytes(raw))),
            "eth_getTransactionCount": self._count,
            "eth_feeHistory": self._fee_history,
            "eth_gasPrice": lambda: hex(chain.base_fee + TIP_WEI),
            "eth_maxPriorityFeePerGas": lambda: hex(TIP_WEI),
            "eth_estimateGas": lambda call, _block=None: hex(chain.estimate(**_call(call))),
            "eth_call": lambda call, at="latest": as_hex(chain.call(**_call(call), height=self._place(at))),
            "eth_getBalance": lambda who, at="latest": hex(self._state(at).get_balance(_bytes(who))),
            "eth_getCode": lambda who, at="latest": as_hex(self._state(at).get_code(_bytes(who))),
            "eth_getStorageAt": lambda who, slot, at="latest": _word(
                self._state(at).get_storage(_bytes(who), int(slot, 16))
            ),
            "evm_increaseTime": self._increase_time,
            "evm_mine": self._mine,
            "anvil_setBalance": lambda who, wei: chain.change(
                lambda state: state.set_balance(_bytes(who), int(wei, 16))
            ),
            "anvil_setCode": lambda who, code: chain.change(lambda state: state.set_code(_bytes(who), _bytes(code))),
            "anvil_setStorageAt": self._set_storage,
        }

    def answer(self, request: Json) -> Json:
        """Return the response to one request."""
        head = {"jsonrpc": "2.0", "id": request.get("id")}
        method = self.methods.get(str(request.get("method")))
        if method is None:
            return {**head, "error": {"code": METHOD_NOT_FOUND, "message": "Method not found"}}
        try:
            with self._chain.lock:
                return {**head, "result": method(*request.get("params", []))}
        except RefusedError as error:
            return {**head, "error": {"code": REFUSED, "message": str(error)}}
        except VMError as error:
            return {**head, "error": {"code": REVERTED, "message": f"execution reverted: {error}"}}
        except (TypeError, ValueError, KeyError) as error:
            return {**head, "error": {"code": INVALID_PARAMS, "message": f"{type(error).__name__}: {error}"}}

    def _height(self, tag: str) -> int:
        if tag == "earliest":
            return 0
        if tag in DEPTHS:
            return max(0, self._chain.height - DEPTHS[tag])
        return int(tag, 16)

    def _place(self, at: str | Json) -> int:
        if isinstance(at, str):
            return self._height(at)
        block = self._chain.block_by_hash(_bytes(at["blockHash"]))
        if block is None:
            raise ValueError("unknown block")
        return int(block.number)

    def _state(self, at: str | Json) -> Any:
        return self._chain.state(self._place(at))

    def _block_by_number(self, tag: str, full: bool) -> Json | None:  # noqa: FBT001  the protocol's order
        block = self._chain.block(self._height(tag))
        return None if block is None else block_json(block, full=full)

    def _block_by_hash(self, block_hash: str, full: bool) -> Json | None:  # noqa: FBT001  the protocol's order
        block = self._chain.block_by_hash(_bytes(block_hash))
        return None if block is None else block_json(block, full=full)

    def _block_receipts(self, tag: str) -> list[Json] | None:
        block = self._chain.block(self._height(tag))
        return None if block is None else receipts_json(block, self._chain.receipts(block))

    def _logs(self, wanted: Json) -> list[Json]:
        if "blockHash" in wanted:
            blocks = [self._chain.block_by_hash(_bytes(wanted["blockHash"]))]
        else:
            first, last = (self._height(wanted.get(name, "latest")) for name in ("fromBlock", "toBlock"))
            if last - first >= RANGE_MAX:
                raise ValueError("block range is too large")
            blocks = [self._chain.block(height) for height in range(first, min(last, self._chain.height) + 1)]
        if None in blocks:
            raise ValueError("unknown block")
        receipts = (found for block in blocks for found in receipts_json(block, self._chain.receipts(block)))
        return [log for receipt in receipts for log in receipt["logs"] if matches(log, wanted)]

    def _transaction(self, txid: str) -> Json | None:
        found = self._chain.find(_bytes(txid))
        if found is not None:
            block, index = found
            return transaction_json(block.transactions[index], block, index)
        waiting = self._chain.pooled(_bytes(txid))
        return None if waiting is None else transaction_json(waiting, None, None)

    def _receipt(self, txid: str) -> Json | None:
        found = self._chain.find(_bytes(txid))
        if found is None:
            return None
        block, index = found
        return receipts_json(block, self._chain.receipts(block))[index]

    def _count(self, who: str, at: str = "latest") -> str:
        if at == "pending":
            return hex(self._chain.pending_nonce(_bytes(who)))
        return hex(self._state(at).get_nonce(_bytes(who)))

    def _fee_history(self, count: str | int, newest: str, percentiles: list[float] | None = None) -> Json:
        last = self._height(newest)
        wanted = int(count, 16) if isinstance(count, str) else count
        heights = range(max(0, last - wanted + 1), last + 1)
        headers = [self._chain.block(height).header for height in heights]  # type: ignore[union-attr]
        return {
            "oldestBlock": hex(heights[0]),
            "baseFeePerGas": [*(hex(header.base_fee_per_gas) for header in headers), hex(self._chain.base_fee)],
            "gasUsedRatio": [header.gas_used / GAS_LIMIT for header in headers],
            "reward": [[hex(TIP_WEI)] * len(percentiles or []) for _ in headers],
        }

    def _increase_time(self, seconds: int) -> int:
        self._chain.advance(seconds)
        return seconds

    def _mine(self) -> str:
        self._chain.mine()
        return "0x0"

    def _set_storage(self, who: str, slot: str, word: str) -> bool:
        self._chain.change(lambda state: state.set_storage(_bytes(who), int(slot, 16), int(word, 16)))
        return True


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _word(number: int) -> str:
    return as_hex(number.to_bytes(32, "big"))


def _call(call: Json) -> dict[str, Any]:
    return {
        "sender": _bytes(call["from"]) if call.get("from") else ZERO_ADDRESS,
        "to": _bytes(call.get("to") or ""),
        "value": int(call.get("value") or "0x0", 16),
        "data": _bytes(call.get("data") or call.get("input") or ""),
    }


def make_server(node: Node, port: int) -> ThreadingHTTPServer:
    """Return a server that answers on loopback; requests may come in batches."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            if length > BODY_BYTES_MAX:
                self.send_error(413)
                return
            asked = json.loads(self.rfile.read(length))
            answer = [node.answer(one) for one in asked] if isinstance(asked, list) else node.answer(asked)
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: a node is asked several times a second."""

    server = ThreadingHTTPServer((LOOPBACK, port), Handler)
    server.daemon_threads = True
    return server


def main() -> None:
    """Serve until killed, which loses nothing but what waits for its block."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--chain-id", type=int, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--block-time", type=float, default=1.0)
    options = parser.parse_args()
    chain = PyEvmChain(options.state, chain_id=options.chain_id)
    server = make_server(Node(chain), options.port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        time.sleep(options.block_time)
        chain.mine()


if __name__ == "__main__":
    main()
