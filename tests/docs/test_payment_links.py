"""docs/payment-links.md: its samples are what the gateway takes and answers; its codes, figures and variables exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import msgspec

from api.routes.payment_links import buyers
from core.errors import ERRORS
from core.http.requests import read_request
from core.payment_links.schemas import (
    EXPIRES_IN_MAX_S,
    PAYMENTS_OFFSET_MAX,
    BuyersOrder,
    CreatedPaymentLink,
    CreatePaymentLink,
)
from core.settings.settings import Settings

PAGE: Final = (Path(__file__).parents[2] / "docs" / "payment-links.md").read_text(encoding="utf-8")


def test_the_samples_are_accepted_and_answered() -> None:
    asked, answered, order = map(json.loads, re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))

    link: Any = read_request(CreatePaymentLink, asked, own_hosts=frozenset())
    made = msgspec.convert(answered["result"], CreatedPaymentLink)
    bought: Any = read_request(BuyersOrder, order, own_hosts=frozenset())
    assert made.url.endswith(f"/link/{made.link_id}")
    assert float(link.amount_min) <= float(bought.amount) <= float(link.amount_max)


def test_the_table_has_the_checkouts_codes_with_their_status() -> None:
    by_code = {
        code: int(status)
        for codes, status in re.findall(r"^\| (`[a-z_.`, ]+`) \| ([0-9]{3}) \|", PAGE, re.MULTILINE)
        for code in re.findall(r"`([a-z_.]+)`", codes)
    }

    endpoint = next(endpoint for endpoint in buyers.ENDPOINTS if endpoint.name == "checkOutLink")
    assert by_code == {error.code: ERRORS[error.code].status for error in endpoint.own_errors()}


def test_the_figures_are_the_codes() -> None:
    assert f"ten years ({EXPIRES_IN_MAX_S})" in PAGE
    assert f"`offset` goes to {PAYMENTS_OFFSET_MAX}" in PAGE
    for name, default in re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", PAGE, re.MULTILINE):
        assert int(Settings.model_fields[name.lower()].default) == int(default), name
