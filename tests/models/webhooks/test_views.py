"""Trial bodies have the shape of real ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from core.ids import NIL
from core.invoices import states
from core.webhooks.events import Event
from models.webhooks.views import trial

PAGE = (Path(__file__).parents[3] / "docs" / "webhooks.md").read_text(encoding="utf-8")
EVENTS = get_args(Event)


@pytest.mark.parametrize("event", EVENTS)
def test_a_trial_has_the_documented_fields(event: str) -> None:
    body = trial(event)

    row = re.search(rf"^\| `{body['type']}` \| (type, .*) \|$", PAGE, re.MULTILINE)
    assert row is not None
    documented = [re.sub(r" \(.*\)", "", name) for name in row[1].split(", ")]
    assert set(body) == {*documented, "test"}
    assert (body["uuid"], body["test"]) == (str(NIL), True)


def test_a_trial_of_an_invoices_event_has_its_status() -> None:
    assert {trial(event)["status"]: event for event in EVENTS if event.startswith("invoice.")} == states.INVOICE_EVENTS


def test_a_trial_of_a_confirmed_payout_is_paid() -> None:
    assert trial("payout.confirmed")["status"] == "paid"
    assert trial("payout.failed")["status"] == "fail"
