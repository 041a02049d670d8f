"""Finds coin that contracts passed on: in no transaction and no log, only in balances and traces.

Called by chains.evm.reader.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from chains.base import Block, ProviderError, Transfer, check_units
from chains.evm import wire
from chains.net.json_rpc import Rpc, RpcError

# Of these types alone a frame moves coin of its own; a delegate call repeats its caller's value.
MOVING: Final = frozenset({"CALL", "SELFDESTRUCT", "CREATE", "CREATE2"})
TRACE: Final = "trace:"
# Frames nested deeper than the EVM allows are an invention.
DEPTH_MAX: Final = 1_025


class _Action(msgspec.Struct, rename={"sender": "from", "call_type": "callType", "refund": "refundAddress"}):
    sender: str | None = None
    to: str | None = None
    value: str = "0x0"
    call_type: str = "call"
    # The balance of a self-destructed contract, and its recipient.
    address: str | None = None
    refund: str | None = None
    balance: str = "0x0"


class _Trace(msgspec.Struct, rename="camel"):
    action: _Action
    trace_address: list[int]
    type: str
    transaction_hash: str | None = None
    block_hash: str | None = None
    error: str | None = None


class _Frame(msgspec.Struct, rename={"sender": "from"}):
    type: str = ""
    sender: str = ""
    to: str | None = None
    value: str = "0x0"
    error: str | None = None
    calls: list["_Frame"] = []


class _Traced(msgspec.Struct, rename={"txid": "txHash"}):
    result: _Frame
    txid: str


def balance(node: Rpc, address: str, block_hash: str) -> int:
    """Return an address's coin after a block, in wei."""
    return check_units(wire.quantity(node.call("eth_getBalance", [address, {"blockHash": block_hash}], str)))


def internal_transfers(node: Rpc, block: Block, recipient: str, currency: str) -> tuple[Transfer, ...]:
    """Return what contracts passed on to an address in a block. Raises RpcError if the node does not trace."""
    try:
        transfers = _by_trace_block(node, block, recipient, currency)
    except RpcError:
        transfers = _by_call_tracer(node, block, recipient, currency)
    return tuple(transfers)


def _by_trace_block(node: Rpc, block: Block, recipient: str, currency: str) -> list[Transfer]:
    traces = node.call("trace_block", [hex(block.height)], list[_Trace])
    if any(trace.block_hash is not None and wire.block_or_tx_hash(trace.block_hash) != block.hash for trace in traces):
        raise ProviderError(f"a trace of another block than {block.height}")
    failed = {(t.transaction_hash, *t.trace_address) for t in traces if t.error is not None}
    return [
        transfer
        for trace in traces
        if trace.trace_address and trace.transaction_hash and not _is_undone(trace, failed)
        for transfer in _moved(trace, recipient, currency)
    ]


def _is_undone(trace: _Trace, failed: set[tuple[str | int | None, ...]]) -> bool:
    """Return whether it, or a call that it is part of, was reverted."""
    path = trace.trace_address
    return any((trace.transaction_hash, *path[:depth]) in failed for depth in range(len(path) + 1))


def _moved(trace: _Trace, recipient: str, currency: str) -> Iterator[Transfer]:
    action = trace.action
    sender, to, value = action.sender, action.to, action.value
    if trace.type == "suicide":
        sender, to, value = action.address, action.refund, action.balance
    elif trace.type != "call" or action.call_type != "call":
        return
    path = ".".join(str(step) for step in trace.trace_address)
    yield from _transfer(str(trace.transaction_hash), path, sender, to, value, recipient, currency)


def _by_call_tracer(node: Rpc, block: Block, recipient: str, currency: str) -> list[Transfer]:
    traced = node.call("debug_traceBlockByNumber", [hex(block.height), {"tracer": "callTracer"}], list[_Traced])
    return [
        transfer
        for transaction in traced
        for path, frame in _walk(transaction.result, ())
        if path and frame.type.upper() in MOVING
        for transfer in _transfer(
            transaction.txid, ".".join(map(str, path)), frame.sender, frame.to, frame.value, recipient, currency
        )
    ]


def _walk(frame: _Frame, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], _Frame]]:
    """Yield the frames that were not undone; a failed frame undoes all frames that it called."""
    if frame.error is not None or len(path) > DEPTH_MAX:
        return
    yield path, frame
    for number, call in enumerate(frame.calls):
        yield from _walk(call, (*path, number))


def _transfer(
    txid: str, path: str, sender: str | None, to: str | None, value: str, recipient: str, currency: str
) -> Iterator[Transfer]:
    units = wire.quantity(value or "0x0")
    if to is None or sender is None or units == 0 or wire.address(to) != recipient:
        return
    yield Transfer(
        txid=wire.block_or_tx_hash(txid),
        ordinal=f"{TRACE}{path}",
        currency=currency,
        units=units,
        sender=wire.address(sender),
        recipient=recipient,
    )
