"""Reads a transaction that took from us though no row knows it, from the block that holds it. Called by the reader."""

from typing import Final

from chains.base import Block, ProviderError
from chains.bitcoin import wire
from chains.bitcoin.block import ProvedBlock
from chains.bitcoin.scripts import address_of
from chains.bitcoin.transactions import Tx, id_bytes, read_hex
from chains.net.json_rpc import JsonRpc
from chains.spending import Departure, Offer, Output

KVB: Final = 1_000


def read_departure(node: JsonRpc, proved: ProvedBlock, txid: str, block: Block, chain: str) -> Departure:
    """Return a transaction of a proved block. Raises ProviderError where it is not in that block.

    What its inputs were worth only the node says, and so the fee.
    """
    if proved.block.hash != block.hash or id_bytes(txid) not in proved.ids:
        raise ProviderError(f"{txid} is not in block {block.height}")
    shown = node.call("getrawtransaction", [txid, 2, block.hash], wire.Spent)
    tx = read_hex(shown.hex)
    if tx.txid != txid or tx.is_coinbase:
        raise ProviderError("another transaction than the one asked for")
    if shown.fee is None:
        # Nodes before version 25, and those that have thrown away what the block undid.
        raise ProviderError(f"the node cannot tell what {txid} paid: it is too old, or lacks what the block spent")
    return _departure(tx, wire.units_of(shown.fee), block, chain)


def _departure(tx: Tx, fee_units: int, block: Block, chain: str) -> Departure:
    outputs = tuple(
        Output(recipient=address_of(output.script, chain) or "", units=output.units) for output in tx.outputs
    )
    return Departure(
        txid=tx.txid,
        sender="",
        pair=None,
        outputs=outputs,
        is_transfer=all(output.recipient for output in outputs),
        raw=tx.raw,
        offer=Offer(ceiling_units=fee_units, terms=_terms(tx, fee_units)),
        fee_units=fee_units,
        height=block.height,
        block_hash=block.hash,
        spends=tuple(one.outpoint for one in tx.inputs),
    )


def _terms(tx: Tx, fee_units: int) -> dict[str, int]:
    """Return the offer's terms by the bytes, which do not show the change."""
    return {
        "fee_units": fee_units,
        "change_units": 0,
        "change_parts": 0,
        "lock_height": tx.lock_time,
        "rate": fee_units * KVB // tx.vsize,
        "version": tx.version,
    }
