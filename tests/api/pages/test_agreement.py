"""Page, API and webhook agree on each payment's status and sums after every step of random histories."""

from __future__ import annotations

import json
import os
import re
from typing import Any, ClassVar, Final
from uuid import UUID

import pytest
from hypothesis.stateful import invariant

from models.db.base import rows
from tests.api.conftest import Client
from tests.api.pages.test_page import words
from tests.models.invariants.test_money_machine import MoneyMachine, _gateway, play

__all__ = ["_gateway"]  # the fixture

HISTORIES: Final = 40
HISTORIES_SOAK: Final = 200
STEPS: Final = 8
# The sales that a step is checked on, the newest.
SALES: Final = 3
STAGES: Final = {
    "check": {"waiting", "part", "detected", "over_time", "unpriced", "wrong_coin"},
    "paid": {"paid"},
    "paid_over": {"paid_over"},
    "wrong_amount": {"short", "late", "sent_back", "wrong_coin"},
    "expired": {"expired", "late", "short", "detected", "wrong_coin"},
}
CLIENTS: Final[list[Client]] = []


class ShownMachine(MoneyMachine):
    """A history whose payments are looked at by their buyer, their merchant's page and its webhooks."""

    seen: ClassVar[set[str]] = set()

    @invariant()
    def page_and_api_and_webhook_agree(self) -> None:
        for sale in self.sales[-SALES:]:
            self._compare(sale.id)

    def _compare(self, invoice_id: UUID) -> None:
        [client] = CLIENTS
        page = client.simulate_get(f"/pay/{invoice_id}", headers={"Accept": "text/html"}).text
        answer = client.simulate_get(f"/v1/pay/{invoice_id}").json["result"]
        stage = attribute(page, "data-stage")
        self.seen.add(stage)
        assert stage in STAGES[answer["payment_status"]]
        assert attribute(page, "data-final") == ("yes" if answer["is_final"] else "no")
        asked = re.search(r'<span id="amount">([^<]*)<', page)
        if asked is not None:
            assert asked[1] == answer["amount_remaining"]
        if stage in {"paid", "paid_over"}:
            assert f"{answer['payment_amount']} USDT" in words(page)
        if stage in {"part", "detected"}:
            assert answer["amount_paid"] in words(page)
        event = newest_event(invoice_id)
        # A payment that a reorg has reopened is announced with its next state.
        if event is not None and answer["payment_status"] != "check":
            assert event["status"] == answer["payment_status"]
            assert event["is_final"] == answer["is_final"]
            assert event["payment_amount"] == answer["payment_amount"]


def attribute(page: str, name: str) -> str:
    match = re.search(rf'{name}="([^"]*)"', page)
    assert match is not None
    return match[1]


def newest_event(invoice_id: UUID) -> dict[str, Any] | None:
    """Return the body of a payment's newest webhook; None before its first."""
    bodies = [
        json.loads(body) for (body,) in rows("SELECT body FROM webhook_deliveries WHERE object_id = %s", (invoice_id,))
    ]
    return max(bodies, key=lambda body: int(body["revision"]), default=None)


@pytest.mark.usefixtures("_gateway")
def test_forty_histories_are_shown_alike(client: Client) -> None:
    CLIENTS[:] = [client]
    play(int(os.environ.get("HISTORIES", HISTORIES)), STEPS, machine=ShownMachine)
    assert {"waiting", "detected", "paid"} <= ShownMachine.seen


@pytest.mark.soak
@pytest.mark.usefixtures("_gateway")
def test_two_hundred_longer_histories_are_shown_alike(client: Client) -> None:
    CLIENTS[:] = [client]
    play(int(os.environ.get("HISTORIES", HISTORIES_SOAK)), 2 * STEPS, part=1, machine=ShownMachine)
    assert {"waiting", "detected", "paid"} <= ShownMachine.seen
