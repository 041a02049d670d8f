"""Shows blocks, transactions and coins as Bitcoin Core's JSON does. Used by calls."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from chains.bitcoin.scripts import address_of
from chains.bitcoin.transactions import Tx, TxOutput, double_sha256, id_text
from devstack.bitcoin.facade.pool import CHAIN, Pool, Waiting
from devstack.bitcoin.facade.view import Entry, View

PLACES: Final = -8
SHOWS_TXS, SHOWS_PREVIOUS = 2, 3
KINDS: Final = {20: "witness_v0_keyhash", 32: "witness_v0_scripthash"}
Shown = dict[str, Any]


def coins(units: int) -> Decimal:
    """Return an amount in whole coins, as Core shows it."""
    return Decimal(units).scaleb(PLACES)


def header(view: View, entry: Entry) -> Shown:
    """Return the answer of getblockheader."""
    head = entry.block.header
    is_on = view.is_on_chain(entry)
    shown = {
        "hash": entry.hash, "confirmations": view.height - entry.height + 1 if is_on else -1, "height": entry.height,
        "version": head.version, "versionHex": f"{head.version:08x}", "merkleroot": id_text(head.merkle_root),
        "time": head.time, "mediantime": view.median_time(entry), "nonce": head.nonce, "bits": f"{head.bits:08x}",
        "difficulty": 4.656542373906925e-10, "chainwork": f"{2 * (entry.height + 1):064x}",
        "nTx": len(entry.block.txs),
    }  # fmt: skip
    if entry.height:
        shown["previousblockhash"] = entry.previous
    if is_on and entry.height < view.height:
        shown["nextblockhash"] = view.chain[entry.height + 1]
    return shown


def block(view: View, entry: Entry, verbosity: int) -> Shown:
    """Return the answer of getblock, for verbosity 1 and above."""
    raw = entry.block.raw
    shown = header(view, entry) | {"size": len(raw), "weight": 4 * len(raw) - 3 * _witnesses(entry)}
    if verbosity < SHOWS_TXS:
        return shown | {"tx": [tx.txid for tx in entry.block.txs]}
    return shown | {"tx": [in_block(entry, tx, verbosity) for tx in entry.block.txs]}


def transaction(tx: Tx) -> Shown:
    """Return the fields of a transaction that are known without its block."""
    raw = tx.raw
    return {
        "txid": tx.txid, "hash": wtxid(tx), "version": tx.version, "size": len(raw), "vsize": tx.vsize,
        "weight": tx.weight, "locktime": tx.lock_time, "vin": [_input(tx, number) for number in range(len(tx.inputs))],
        "vout": [output(one, number) for number, one in enumerate(tx.outputs)], "hex": raw.hex(),
    }  # fmt: skip


def output(one: TxOutput, number: int) -> Shown:
    """Return a coin that a transaction makes."""
    return {"value": coins(one.units), "n": number, "scriptPubKey": script(one.script)}


def script(raw: bytes) -> Shown:
    """Return a script with its type and address."""
    address = address_of(raw, CHAIN)
    kind = KINDS.get(len(raw) - 2, "nonstandard") if raw[:1] == b"\0" else "nonstandard"
    shown = {"asm": "", "hex": raw.hex(), "type": kind if address else "nonstandard"}
    return shown | ({"address": address} if address else {})


def waiting(pool: Pool, one: Waiting) -> Shown:
    """Return the answer of getmempoolentry."""
    above = [pool.waiting[txid] for txid in pool.ancestors(one.tx)] + [one]
    below = [pool.waiting[txid] for txid in pool.descendants({one.txid})]
    fees = {
        "base": coins(one.fee_units), "modified": coins(one.fee_units),
        "ancestor": coins(sum(other.fee_units for other in above)),
        "descendant": coins(sum(other.fee_units for other in below)),
    }  # fmt: skip
    return {
        "vsize": one.vsize, "weight": one.tx.weight, "time": one.time, "height": one.height,
        "ancestorcount": len(above), "ancestorsize": sum(other.vsize for other in above),
        "descendantcount": len(below), "descendantsize": sum(other.vsize for other in below),
        "wtxid": wtxid(one.tx), "fees": fees, "depends": sorted(pool.parents(one.tx)),
        "spentby": sorted(pool.children(one.txid)), "bip125-replaceable": True, "unbroadcast": False,
    }  # fmt: skip


def in_block(entry: Entry, tx: Tx, verbosity: int) -> Shown:
    """Return a block's transaction; verbosity 2 adds its fee, 3 the coins that it spent."""
    shown = transaction(tx)
    if not tx.is_coinbase and verbosity >= SHOWS_TXS:
        shown["fee"] = coins(entry.applied.fees_units.get(shown["txid"], 0))
    if verbosity >= SHOWS_PREVIOUS and not tx.is_coinbase:
        for one, shown_input in zip(tx.inputs, shown["vin"], strict=True):
            spent = entry.applied.spent[one.outpoint]
            shown_input["prevout"] = {
                "generated": spent.is_reward, "height": spent.height, "value": coins(spent.output.units),
                "scriptPubKey": script(spent.output.script),
            }  # fmt: skip
    return shown


def wtxid(tx: Tx) -> str:
    """Return the id that covers the signatures too."""
    return id_text(double_sha256(tx.raw))


def _witnesses(entry: Entry) -> int:
    return sum(len(tx.raw) - len(tx.base) for tx in entry.block.txs)


def _input(tx: Tx, number: int) -> Shown:
    one = tx.inputs[number]
    shown: Shown = {"sequence": one.sequence}
    if one.witness:
        shown["txinwitness"] = [part.hex() for part in one.witness]
    if tx.is_coinbase:
        return shown | {"coinbase": one.script.hex()}
    return shown | {"txid": one.txid, "vout": one.vout, "scriptSig": {"asm": "", "hex": one.script.hex()}}
