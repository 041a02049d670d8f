"""`sluice dev pay` pays on every family's chain, and the gateway sees each payment as paid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.catalogue.catalogue import load_catalogue
from devstack.plan import parse_networks
from tests.devstack.waiting import wait_for
from tests.flows.stack import Stack

NETWORKS = tuple(
    {load_catalogue("development").networks[code].family: code for code in reversed(parse_networks("all"))}.values()
)
PAID_LIMIT_S = 180.0


@pytest.fixture
def stack(tmp_path: Path, anvil_program: Path) -> Iterator[Stack]:
    del anvil_program
    with Stack(tmp_path, networks=",".join(NETWORKS)) as running:
        yield running


@pytest.mark.soak
def test_a_payment_is_paid_on_every_family(stack: Stack) -> None:
    assert len(NETWORKS) == 5
    merchant = stack.merchant()
    payments = {network: pay(stack, merchant, network) for network in NETWORKS}

    def status(uuid: str) -> str:
        return str(merchant.get(f"/v1/pay/{uuid}").result["payment_status"])

    wait_for(lambda: {status(uuid) for uuid in payments.values()} == {"paid"}, limit_s=PAID_LIMIT_S)


def pay(stack: Stack, merchant: Any, network: str) -> str:
    """Pay an order whose buyer has chosen no coin yet, in two parts."""
    body = {"amount": "30.00", "currency": "USD", "order_id": f"dev-{network}"}
    uuid = str(merchant.insist("/v1/payment", body)["uuid"])
    pair = load_catalogue("development").pairs_on(network)[0]
    words = ("dev", "--data", str(stack.data), "pay", f"dev-{network}", "--network", network)
    # The least that the network takes, then the rest.
    part = f"{pair.min_deposit_units / 10**pair.decimals:.{pair.decimals}f}"
    done = stack.sluice(*words, "--coin", pair.currency, "--amount", part)
    assert (done["uuid"], done["network"]) == (uuid, network)
    wait_for(lambda: merchant.get(f"/v1/pay/{uuid}").result["amount_paid"] != "0", limit_s=PAID_LIMIT_S)
    assert stack.sluice(*words)["currency"] == pair.currency
    return uuid
