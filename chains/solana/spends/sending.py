"""Gives signed bytes to Solana's nodes and reads their answers. Called by chains.solana.spends.spender."""

from typing import Final

from chains.base import ContradictionError
from chains.net.json_rpc import Rpc, RpcError
from chains.solana.spends import questions
from chains.spending import Sending

# The refusal by a trial, which names its error in words alone.
TRIAL_FAILED: Final = -32002
# By a part of those words, in small letters; the outcome of others is unknown.
WORDS: Final = (
    ("already been processed", Sending.TAKEN),
    ("blockhash not found", Sending.EXPIRED),
    ("insufficient funds", Sending.UNFUNDED),
    ("no record of a prior credit", Sending.UNFUNDED),
    ("insufficient lamports", Sending.UNFUNDED),
    ("custom program error: 0x1", Sending.UNFUNDED),
)


def give(node: Rpc, raw: bytes, txid: str) -> Sending:
    """Give bytes to one node. Raises ProviderError if it is not known what becomes of them."""
    try:
        answer = questions.send(node, raw)
    except RpcError as error:
        sending = _meaning(error)
        if sending is None:
            raise
        return sending
    if answer != txid:
        raise ContradictionError("sendTransaction: another transaction's id")
    return Sending.TAKEN


def _meaning(error: RpcError) -> Sending | None:
    words = error.text.lower()
    if error.code != TRIAL_FAILED:
        return None
    return next((meaning for known, meaning in WORDS if _has(words, known)), None)


def _has(words: str, known: str) -> bool:
    """Return True if the words contain others, as a whole: 0x1 is not 0x11."""
    before, _, after = words.partition(known)
    return before != words and not after[:1].isalnum()
