"""Sends transactions to nodes and reads their answers. Called by chains.bitcoin.spends.spender.

A refusal has a code for a class of reasons and a text for the reason. If a node does not know a coin, it does not say
whether the coin is spent or only newer than the node's chain; the fate decides that.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from chains.base import ProviderError
from chains.bitcoin.spends.fees import KVB, UNITS
from chains.net.json_rpc import JsonRpc, RpcError
from chains.spending import Sending
from core.catalogue.families import BitcoinParameters

ALREADY_IN_CHAIN: Final = -27
# The first matching row counts. An answer on no row is our fault or the node's, and its outcome is unknown.
ANSWERS: Final[Mapping[Sending, tuple[str, ...]]] = MappingProxyType({
    Sending.TAKEN: ("txn-already-in-mempool", "txn-already-known", "txn-same-nonwitness-data-in-mempool",
                    "already in block chain", "already in utxo set"),
    Sending.CLAIM_USED: ("bad-txns-inputs-missingorspent", "missing inputs", "missing-inputs"),
    Sending.UNDERPRICED: ("insufficient fee", "insufficient feerate", "min relay fee not met",
                          "mempool min fee not met", "mempool full", "txn-mempool-conflict"),
})  # fmt: skip
# Nodes refuse a higher rate as a mistake, since it is beyond every cap; in whole coins for a thousand virtual bytes.
RATE_MAX: Final = BitcoinParameters.FEE_CAP_MAX * KVB / UNITS


def give(node: JsonRpc, raw: bytes, txid: str) -> Sending:
    """Send bytes to one node. Raises ProviderError if the outcome is unknown."""
    try:
        answer = node.call("sendrawtransaction", [raw.hex(), RATE_MAX], str)
    except RpcError as error:
        return _meaning(error)
    if answer != txid:
        raise ProviderError("sendrawtransaction: another transaction's id")
    return Sending.TAKEN


def _meaning(error: RpcError) -> Sending:
    if error.code == ALREADY_IN_CHAIN:
        return Sending.TAKEN
    text = error.text.lower()
    for sending, known in ANSWERS.items():
        if any(part in text for part in known):
            return sending
    raise error
