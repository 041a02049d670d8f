"""Gives signed bytes to nodes and reads their answers, which each program words in its own way.

Called by chains.evm.spends.spender.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from chains.base import ProviderError, Sending
from chains.evm.nodes import wire
from chains.evm.nodes.rpc import JsonRpc, RpcError

# The first row that fits counts. Collected from geth, erigon, nethermind, besu, reth, anvil, nitro and bor.
ANSWERS: Final[Mapping[Sending, tuple[str, ...]]] = MappingProxyType({
    Sending.TAKEN: ("already known", "alreadyknown", "already_exists", "already exists", "already imported",
                    "known transaction"),
    Sending.CLAIM_USED: ("nonce too low", "nonce is too low", "nonce_too_low", "oldnonce",
                         "nonce has already been used", "nonce already used", "ownnoncealreadyused"),
    Sending.UNDERPRICED: ("underpriced", "less than block base fee", "fee too low", "feetoolow", "gas price too low",
                          "gas price below configured minimum", "price is too low", "replacementnotallowed"),
    Sending.UNFUNDED: ("insufficient funds", "insufficientfunds", "insufficient balance",
                       "upfront cost exceeds account balance"),
})  # fmt: skip


def give(node: JsonRpc, raw: bytes, txid: str) -> Sending:
    """Give bytes to one node. Raises ProviderError where it is not known what became of them."""
    try:
        told = wire.block_or_tx_hash(node.call("eth_sendRawTransaction", ["0x" + raw.hex()], str))
    except RpcError as error:
        # Who does not know a kind of transaction has not taken it.
        text = error.text.lower().replace("unknown transaction", "")
        for sending, known in ANSWERS.items():
            if any(part in text for part in known):
                return sending
        raise
    if told != txid:
        raise ProviderError("eth_sendRawTransaction: another transaction's id")
    return Sending.TAKEN


def outcome(sendings: list[Sending]) -> Sending:
    """Return what holds of what nodes answered: taken by one is taken, then the order of Sending."""
    return next(sending for sending in Sending if sending in sendings)
