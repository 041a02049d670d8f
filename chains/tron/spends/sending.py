"""Gives signed bytes to TRON's nodes and reads their answers. Called by chains.tron.spends.spender."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from chains.base import ProviderError
from chains.net.rest import RestNode
from chains.spending import Sending
from chains.tron.wire import words

# The meaning of each code; the outcome of other codes is unknown. There is no code for an account that lacks the coin
# of a transaction.
CODES: Final[Mapping[str, Sending]] = MappingProxyType({
    "SUCCESS": Sending.TAKEN,
    "DUP_TRANSACTION_ERROR": Sending.TAKEN,
    "TRANSACTION_EXPIRATION_ERROR": Sending.EXPIRED,
    "BANDWITH_ERROR": Sending.UNFUNDED,
})  # fmt: skip
INVALID: Final = "CONTRACT_VALIDATE_ERROR"
SHORTAGES: Final = ("balance is not sufficient", "not enough", "insufficient", "account does not exist")


class _Answer(msgspec.Struct):
    result: bool = False
    code: str = ""
    txid: str = ""
    message: str = ""


def give(node: RestNode, raw: bytes, txid: str) -> Sending:
    """Give bytes to one node. Raises ProviderError if it is not known what becomes of them."""
    answer = node.ask("wallet/broadcasthex", {"transaction": raw.hex()}, _Answer)
    if answer.txid and answer.txid != txid:
        raise ProviderError("wallet/broadcasthex: another transaction's id")
    code, text = answer.code or ("SUCCESS" if answer.result else ""), words(answer.message)
    if code == INVALID and any(known in text.lower() for known in SHORTAGES):
        return Sending.UNFUNDED
    if code not in CODES:
        raise ProviderError(f"wallet/broadcasthex: {code} {text}"[:200])
    return CODES[code]
