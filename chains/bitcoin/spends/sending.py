"""Gives transactions to nodes and reads their answers. Called by chains.bitcoin.spends.spender.

A node that says no gives a code for a class of reasons and a text for the reason. Whether a coin that a node does not
know is spent, and by whom, or is only newer than the node's chain, it does not say: that is for the fate to tell.
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
# The first row that fits counts. What is on no row is a fault of ours or of the node's: nothing is known then.
ANSWERS: Final[Mapping[Sending, tuple[str, ...]]] = MappingProxyType({
    Sending.TAKEN: ("txn-already-in-mempool", "txn-already-known", "txn-same-nonwitness-data-in-mempool",
                    "already in block chain", "already in utxo set"),
    Sending.CLAIM_USED: ("bad-txns-inputs-missingorspent", "missing inputs", "missing-inputs"),
    Sending.UNDERPRICED: ("insufficient fee", "insufficient feerate", "min relay fee not met",
                          "mempool min fee not met", "mempool full", "txn-mempool-conflict"),
})  # fmt: skip
# What is beyond every cap is sent by mistake, in whole coins for a thousand virtual bytes.
RATE_MAX: Final = BitcoinParameters.FEE_CAP_MAX * KVB / UNITS


def give(node: JsonRpc, raw: bytes, txid: str) -> Sending:
    """Give bytes to one node. Raises ProviderError if the outcome is not known."""
    try:
        told = node.call("sendrawtransaction", [raw.hex(), RATE_MAX], str)
    except RpcError as error:
        return _meaning(error)
    if told != txid:
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
