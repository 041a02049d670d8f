"""Gives signed requests to TON's nodes and reads their answers. Called by chains.ton.spends.spender.

A node tries the request on its newest state first. Its refusal names the code with which the wallet ended.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

from chains.spending import Sending
from chains.ton.nodes import Toncenter, ToncenterError

# The codes of the wallet: another number is next, and the request has ended.
MEANINGS: Final[Mapping[int, Sending]] = {133: Sending.CLAIM_USED, 136: Sending.EXPIRED}
# By a part of a refusal's words, in small letters; the outcome of others is unknown.
WORDS: Final = (
    ("duplicate message", Sending.TAKEN),
    ("before smart-contract execution", Sending.UNFUNDED),
    ("failed to unpack account state", Sending.UNFUNDED),
)
_CODE: Final = re.compile(r"exit ?code[=: ]+(\d{1,5})\b")


def give(node: Toncenter, raw: bytes) -> Sending:
    """Give bytes to one node. Raises ProviderError if it is not known what becomes of them."""
    try:
        node.ask("sendBoc", dict[str, Any], boc=base64.b64encode(raw).decode())
    except ToncenterError as error:
        sending = _meaning(error.text.lower())
        if sending is None:
            raise
        return sending
    return Sending.TAKEN


def _meaning(words: str) -> Sending | None:
    code = _CODE.search(words)
    if code is not None:
        return MEANINGS.get(int(code[1]))
    return next((meaning for known, meaning in WORDS if known in words), None)
