"""A table reads nodes' answers to signed bytes; after any other answer their fate is unknown."""

from __future__ import annotations

import pytest

from chains.base import ProviderError
from chains.net.rest import RestNode
from chains.spending import Sending
from chains.tron.spends.sending import give
from tests.chains.net.rest_peer import RestPeer

TXID = "ab" * 32
INVALID = "CONTRACT_VALIDATE_ERROR"
UNKNOWN = (
    "SIGERROR", "CONTRACT_EXE_ERROR", "TAPOS_ERROR", "TOO_BIG_TRANSACTION_ERROR", "SERVER_BUSY", "NO_CONNECTION",
    "NOT_ENOUGH_EFFECTIVE_CONNECTION", "BLOCK_UNSOLIDIFIED", "OTHER_ERROR", "NEW_ERROR",
)  # fmt: skip


def sent(answer: dict[str, object]) -> Sending:
    with RestPeer({"wallet/broadcasthex": answer}) as peer:
        return give(RestNode(peer.url, timeout_s=5), b"bytes", TXID)


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        ({"result": True, "txid": TXID}, Sending.TAKEN),
        ({"result": True, "code": "SUCCESS", "txid": TXID}, Sending.TAKEN),
        ({"code": "DUP_TRANSACTION_ERROR", "txid": TXID}, Sending.TAKEN),
        ({"code": "TRANSACTION_EXPIRATION_ERROR"}, Sending.EXPIRED),
        ({"code": "BANDWITH_ERROR"}, Sending.UNFUNDED),
        ({"code": INVALID, "message": "Validate InternalTransfer error, balance is not sufficient."}, Sending.UNFUNDED),
        ({"code": INVALID, "message": b"balance is not sufficient".hex()}, Sending.UNFUNDED),
        ({"code": INVALID, "message": b"Account does not exist".hex()}, Sending.UNFUNDED),
        ({"code": INVALID, "message": "not enough energy"}, Sending.UNFUNDED),
    ],
)
def test_a_code_has_the_tables_meaning(answer: dict[str, object], meaning: Sending) -> None:
    assert sent(answer) is meaning


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"result": False},
        {"result": True, "txid": "cd" * 32},
        {"code": INVALID, "message": "No contract or not a smart contract"},
        *({"code": code} for code in UNKNOWN),
    ],
)
def test_a_code_outside_the_table_leaves_the_fate_unknown(answer: dict[str, object]) -> None:
    with pytest.raises(ProviderError):
        sent(answer)
