"""Reads a whole transaction that one of our keys signed, so that it can be followed like a recorded spend.

Called by chains.tron.reader for transactions that the scan found leaving our addresses without a row. Its bytes have to
hash to its id and carry the sender's signature, so no node can invent one.
"""

from __future__ import annotations

from collections.abc import Iterable

from chains.base import AbsentError, Block, NotYetError, ProviderError
from chains.net.rest import RestNode
from chains.spending import Departure, Offer, Output, Window
from chains.tron import accounts, nodes, transactions, wire
from chains.tron.keys import address_of
from chains.tron.spends import fate
from chains.tron.transactions import Signed
from core.catalogue.catalogue import Pair


def read(node: RestNode, txid: str, block: Block, pairs: Iterable[Pair]) -> Departure | None:
    """Return a transaction in a block; None if its bytes do not prove who signed it.

    Raises ProviderError if the node has it in no block or in another one, and AbsentError if the node has the very
    block without it.
    """
    tx, info = _included(node, txid, block)
    raw = wire.data(tx.raw_data_hex)
    signed = transactions.read(raw)
    signature = wire.data(tx.signature[0]) if len(tx.signature) == 1 else b""
    if signed is None or signed.txid != txid or _signer(txid, signature) != signed.owner:
        return None
    pair, output, is_transfer = _moved(signed, pairs)
    effect = fate.effect_of(
        info,
        is_success=tx.is_success,
        result="".join(each.contract_ret for each in tx.ret),
        sender=signed.owner,
        pair=pair,
        output=output,
    )
    return Departure(
        txid=txid,
        sender=signed.owner,
        pair=pair,
        outputs=(output,),
        is_transfer=is_transfer,
        raw=transactions.signed(raw, signature).raw,
        offer=Offer(
            ceiling_units=max(signed.fee_limit, info.fee),
            terms={"fee_limit": signed.fee_limit, "timestamp_ms": signed.timestamp_ms},
        ),
        fee_units=info.fee,
        height=block.height,
        block_hash=block.hash,
        failed=frozenset({0}) if effect.effect == "none" else frozenset(),
        window=Window(reference=_reference(signed), ends_at=wire.moment(signed.expiration_ms)),
    )


def listed(node: RestNode, block: Block) -> frozenset[str]:
    """Return the transactions of a block on one node. Raises ProviderError if it has another block at that height."""
    full = node.ask("wallet/getblockbynum", {"num": block.height}, wire.FullBlock)
    if wire.block(full, block.height).hash != block.hash:
        raise NotYetError(f"another block than {block.hash}")
    return frozenset(each.id for each in full.transactions)


def _included(node: RestNode, txid: str, block: Block) -> tuple[wire.Transaction, wire.Info]:
    """Return a transaction of a block and its outcome."""
    stands, info = fate.included_in(node, txid, block.height), fate.info_of(node, txid, accounts.NEWEST)
    if stands is None or info is None:
        is_same = wire.block(nodes.header(node, block.height), block.height).hash == block.hash
        raise (AbsentError if is_same and stands is None else NotYetError)(f"none such in block {block.height}")
    tx, block_hash = stands
    if block_hash != block.hash or info.height != block.height:
        raise ProviderError(f"another block than {block.hash}")
    return tx, info


def _moved(signed: Signed, pairs: Iterable[Pair]) -> tuple[Pair | None, Output, bool]:
    """Return the coin and the output of a transaction, and whether it is a plain transfer."""
    tokens = {pair.contract: pair for pair in pairs if pair.contract is not None}
    pair = tokens.get(signed.to)
    if pair is not None and not signed.units and len(signed.data) == transactions.TRANSFER_BYTES:
        payee = wire.stored("41" + signed.data[16:36].hex())
        output = Output(recipient=payee, units=int.from_bytes(signed.data[36:], "big"))
        if signed.data == transactions.calldata(output):
            return pair, output, not signed.has_more
    is_transfer = signed.kind == wire.TRANSFER and not signed.has_more
    return None, Output(recipient=signed.to, units=signed.units), is_transfer


def _reference(signed: Signed) -> str:
    """Return the parts of a block's id that the bytes hold, padded. No other part is ever used."""
    return signed.reference[:2].hex().rjust(16, "0") + signed.reference[2:].hex()


def _signer(txid: str, signature: bytes) -> str:
    from tronpy.keys import Signature  # noqa: PLC0415 - chain libraries are loaded only where needed

    if len(signature) != transactions.SIGNATURE_BYTES:
        return ""
    parity = signature[-1] - 27 if signature[-1] >= 27 else signature[-1]  # noqa: PLR2004 - as others write it
    try:
        key = Signature(signature[:-1] + bytes([parity])).recover_public_key_from_msg_hash(bytes.fromhex(txid))
    except Exception:  # noqa: BLE001 - on invalid bytes the library may raise anything
        return ""
    return address_of(key.to_bytes())
