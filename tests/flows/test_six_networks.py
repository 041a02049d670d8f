"""The six EVM networks at once: one gateway scans, pays out, survives reorgs and audits on all of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.catalogue.catalogue import load_catalogue
from tests.flows.buyer import Buyer
from tests.flows.stack import Stack

NETWORKS = ("ethereum", "bsc", "polygon", "avalanche", "base", "arbitrum")
PER_NETWORK = 4
SETTLE_LIMIT_S = 120.0
CATALOGUE = load_catalogue("development")


@pytest.fixture
def stack(tmp_path: Path, anvil_program: Path) -> Iterator[Stack]:
    del anvil_program
    with Stack(tmp_path, networks=",".join(NETWORKS)) as running:
        yield running


def pay_on(stack: Stack, network: str) -> list[str]:
    """Create and pay invoices on a network, tokens and, where it is offered, coin; replace its last blocks once."""
    merchant = stack.merchant()
    buyer = Buyer(stack.ready["rpc"][network], stack.ready["buyer_key"], stack.ready["tokens"][network])
    native = CATALOGUE.networks[network].native
    decimals = {pair.currency: pair.decimals for pair in CATALOGUE.pairs_on(network)}
    created: list[dict[str, Any]] = []
    for number in range(PER_NETWORK):
        coin = native if native and number == PER_NETWORK - 1 else "USDT"
        invoice = merchant.insist(
            "/v1/payment", {"amount": f"{10 + number}", "currency": "USD", "to_currency": coin, "network": network}
        )
        assert invoice["network"] == network
        buyer.pay(invoice, decimals=decimals)
        created.append(invoice)
        if number == 1:
            time.sleep(2)
            buyer.reorg(1)
            # Payments that the reorg dropped are sent again, as a wallet would.
            time.sleep(1)
            buyer.nonce = int(buyer.rpc("eth_getTransactionCount", buyer.account.address, "latest"), 16)
    return [invoice["uuid"] for invoice in created]


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_all_networks_credit_their_payments_at_once(stack: Stack) -> None:
    with ThreadPoolExecutor(len(NETWORKS)) as pool:
        created = dict(zip(NETWORKS, pool.map(lambda network: pay_on(stack, network), NETWORKS), strict=True))
    merchant, end = stack.merchant(), time.monotonic() + SETTLE_LIMIT_S
    waiting = {uuid: network for network, uuids in created.items() for uuid in uuids}
    while waiting and time.monotonic() < end:
        for uuid in tuple(waiting):
            with contextlib.suppress(OSError):
                if merchant.get(f"/v1/pay/{uuid}").result["payment_status"] == "paid":
                    del waiting[uuid]
        time.sleep(0.5)

    assert waiting == {}
    assert stack.sluice("audit")["violations"] == []
