"""Reads a whole transaction that one of our keys signed, so that it can be followed like a recorded spend.

Called by chains.solana.reader for transactions that the scan found leaving our addresses without a row. Its bytes carry
the signatures of all its signers, and its id is the first of them, so no node can invent one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chains.base import AbsentError, Block, DisownedError, NotYetError, ProviderError
from chains.net.json_rpc import Rpc
from chains.solana import nodes, wire
from chains.solana.spends import fate, outcomes
from chains.solana.spends.outcomes import Change
from chains.solana.spends.trial import LIFE_BLOCKS
from chains.solana.transactions import Body, Signed
from chains.spending import Departure, Intent, KeyRef, Offer, Output, Window
from core.catalogue.catalogue import Pair


def read(node: Rpc, txid: str, block: Block, pairs: Iterable[Pair], *, sender: str = "") -> Departure | None:
    """Return a transaction in a block; None if its bytes do not prove who signed it.

    sender: the signer whose loss counts; '' for the largest one. Raises ProviderError if the node has it in no block or
    in another one, AbsentError if the node has the very block without it, and DisownedError if the sender did not sign.
    """
    listed = nodes.whole(node, block.height, wire.SignedBlock, details=nodes.SIGNATURES)
    if listed.blockhash != block.hash or listed.block_height is None:
        raise NotYetError(f"another block than {block.hash}")
    if txid not in listed.signatures:
        raise AbsentError(f"none such in block {block.height}")
    there = fate.included(node, txid)
    if there is None or there[2] != block.height:
        raise NotYetError(f"a transaction of block {block.height} that its node does not show")
    signed, made, _ = there
    tokens = {pair.contract: pair for pair in pairs if pair.contract is not None}
    if sender and sender not in signed.signers:
        raise DisownedError("other keys signed the transaction")
    body = signed.body if signed.body is not None and sender in {"", signed.body.sender} else None
    intent = _intent(body, tokens) if body is not None else _taken(signed, made, tokens, sender)
    sender, payer = intent.wallet.address, signed.signers[0]
    owners = {sender, *(output.recipient for output in intent.outputs)}
    fee = outcomes.cost(made, intent.pair, owners) if body is not None else _besides(made, intent, payer)
    return Departure(
        txid=txid,
        sender=sender,
        payer=payer if body is not None and payer != sender else "",
        pair=intent.pair,
        outputs=intent.outputs,
        is_transfer=body is not None,
        raw=signed.raw,
        offer=_offer(body, made, fee),
        fee_units=fee,
        height=block.height,
        block_hash=block.hash,
        failed=frozenset() if made.err is None else frozenset({0}),
        # The block of its reference is older than its own, so that no later one could have included it.
        window=Window(reference=signed.reference, last_block=listed.block_height + LIFE_BLOCKS),
    )


def _intent(body: Body, tokens: Mapping[str, Pair]) -> Intent:
    """Return the transfer of a message in our own form. Raises ProviderError for a token that is not offered."""
    pair = tokens.get(body.mint)
    if body.mint and (pair is None or pair.decimals != body.decimals):
        raise ProviderError(f"a transfer of {body.mint}, which is not offered")
    return Intent(
        wallet=KeyRef(address=body.sender, ordinal=None),
        pair=pair,
        outputs=(Output(recipient=body.recipient, units=body.units, memo=body.memo),),
    )


def _taken(signed: Signed, made: Change, tokens: Mapping[str, Pair], sender: str) -> Intent:
    """Return a signer's loss by balances, as a transfer to the one who gained most: tokens before SOL.

    sender: the signer; '' for the one who lost most.
    """
    signers = [sender] if sender else signed.signers
    for pair in (*tokens.values(), None):
        gained = _gained(made, pair, signed)
        loser = min(signers, key=lambda signer: gained.get(signer, 0))
        if gained.get(loser, 0) < 0:
            winner = max(gained, key=lambda owner: gained[owner])
            return _moved(loser, winner, pair, -gained[loser])
    return _moved(signers[0], signers[0], None, 0)


def _besides(made: Change, intent: Intent, payer: str) -> int:
    """Return the lamports that a signer lost besides the coin of `_taken`: the fee; next to a token, all SOL."""
    sender = intent.wallet.address
    if intent.pair is None:
        return made.fee * (sender == payer)
    return max(0, -made.lamports.get(sender, 0))


def _moved(sender: str, recipient: str, pair: Pair | None, units: int) -> Intent:
    wallet = KeyRef(address=sender, ordinal=None)
    return Intent(wallet=wallet, pair=pair, outputs=(Output(recipient=recipient, units=units),))


def _gained(made: Change, pair: Pair | None, signed: Signed) -> dict[str, int]:
    """Return the signed units of a coin by owner, without the payer's fee."""
    if pair is None:
        gained = dict(made.lamports)
        gained[signed.signers[0]] += made.fee
        return gained
    owners = {owner for owner, mint, _ in made.tokens if mint == pair.contract}
    return {owner: made.units(owner, pair) for owner in owners}


def _offer(body: Body | None, made: Change, fee: int) -> Offer:
    if body is None:
        return Offer(ceiling_units=made.fee, terms={})
    terms = {"limit": body.limit, "price": body.price, "mark": body.mark}
    return Offer(ceiling_units=max(body.fee_units, fee), terms=terms)
