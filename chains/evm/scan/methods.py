"""Finds which of the methods that the scan leans on a node lacks, and what that costs. Called by chains.evm.reader."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from chains.evm.scan.block import TRANSFER_TOPIC
from chains.net.json_rpc import Rpc, RpcError

NOBODY: Final = "0x" + "00" * 20


@dataclass(frozen=True, slots=True)
class Need:
    """Something that is asked of a node: any one of the methods does."""

    methods: tuple[str, ...]
    # Of one method, at a block's height in hex.
    params: Callable[[str], Sequence[object]]
    without_it: str


LOGS: Final = Need(
    ("eth_getLogs",),
    lambda at: [{"fromBlock": at, "toBlock": at, "address": [NOBODY], "topics": [TRANSFER_TOPIC]}],
    "tokens are not found, and nothing is caught up with by ranges",
)
RECEIPTS: Final = Need(
    ("eth_getBlockReceipts",),
    lambda at: [at],
    "receipts are asked for one by one, and logs that a node leaves out are not found out",
)
TRACES: Final = Need(
    ("trace_block", "debug_traceBlockByNumber"),
    lambda at: [at, {"tracer": "callTracer"}],
    "coin that contracts pass on is booked without its transaction",
)


def finality(tag: str) -> Need:
    """Return the need for a block by the chain's own tag."""
    return Need((f"eth_getBlockByNumber {tag}",), lambda _at: [tag, False], "what is final is judged by depth alone")


def lacking(node: Rpc, *, finality_tag: str | None, is_coin_offered: bool) -> list[str]:
    """Return a line for each need that a node does not meet. Raises ProviderError if it does not answer at all."""
    at = node.call("eth_blockNumber", [], str)
    needs = [
        LOGS,
        RECEIPTS,
        *([finality(finality_tag)] if finality_tag else []),
        *([TRACES] if is_coin_offered else []),
    ]
    return [f"lacks {' and '.join(need.methods)}: {need.without_it}" for need in needs if not _is_met(node, need, at)]


def _is_met(node: Rpc, need: Need, at: str) -> bool:
    return any(_answers(node, method, need.params(at)) for method in need.methods)


def _answers(node: Rpc, method: str, params: Sequence[object]) -> bool:
    """Return True if a node knows a method. Errors other than a refusal prove no lack and are raised."""
    name = method.partition(" ")[0]
    try:
        return node.call_or_none(name, params[:1] if name == "trace_block" else params, object) is not None
    except RpcError:
        return False
