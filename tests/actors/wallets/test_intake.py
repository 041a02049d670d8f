"""A deposit of a wallet counts over any network, in any coin, of any amount."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from actors.scan import record
from chains.base import Block, Transfer
from core.ids import uuid7
from models.db.base import app_now
from models.deposits.rows import Owner
from tests.models.builders import CATALOGUE, SENDER

WALLET = Owner("0xbb", "wallet", uuid7(), uuid7(), "USDT", "ethereum")


@pytest.mark.parametrize(
    ("network", "currency", "units"),
    [
        pytest.param("ethereum", "USDT", 10_000_000, id="its coin"),
        pytest.param("ethereum", "USDT", 1, id="the least of it"),
        pytest.param("ethereum", "DAI", 10**18, id="another coin"),
        pytest.param("ethereum", "ETH", 1, id="the least of another"),
        pytest.param("bsc", "USDT", 10**19, id="its coin over another network"),
        pytest.param("bsc", "USDT", 1, id="the least of that"),
        pytest.param("bsc", "BNB", 10**18, id="another coin over another network"),
    ],
)
@pytest.mark.usefixtures("database")
def test_no_deposit_of_a_wallet_is_a_stray(network: str, currency: str, units: int) -> None:
    block = Block(height=7, hash="0x7", parent_height=6, parent_hash="0x6", time=app_now())
    transfer = Transfer(txid="0xaa", ordinal="0", currency=currency, units=units, sender=SENDER, recipient="0xbb")
    ctx = cast("Any", SimpleNamespace(catalogue=CATALOGUE))

    recorded = record.found_in(ctx, CATALOGUE.networks[network], block, transfer, WALLET)

    assert recorded.stray_reason is None
    assert (recorded.owner_kind, recorded.owner_id, recorded.merchant_id) == (
        WALLET.kind,
        WALLET.id,
        WALLET.merchant_id,
    )
    assert recorded.currency == currency
