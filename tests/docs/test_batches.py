"""docs/batches.md: its samples are what the API says, its codes exist, its numbers are the code's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec

from actors.batches.ticks import BEGUN_MAX, PAUSES_S
from core.batches.schemas import ITEMS_MAX, BatchCreated, BatchInfo, CreatePaymentBatch
from core.errors import ERRORS, BatchSkipped
from core.http.requests import read_request
from models.batches.items import LEASE_S

PAGE = (Path(__file__).parents[2] / "docs" / "batches.md").read_text(encoding="utf-8")


def test_the_samples_match_requests_and_answers() -> None:
    samples = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    request, created, info = map(json.loads, samples)

    assert len(read_request(CreatePaymentBatch, request, own_hosts=frozenset()).payments) == created["result"]["count"]
    msgspec.convert(created["result"], BatchCreated)
    msgspec.convert(info["result"], BatchInfo)


def test_every_code_exists() -> None:
    codes = set(re.findall(r"`((?:batch|payout|payment|merchant|gateway)\.\w+)`", PAGE))

    assert "batch.skipped" in codes
    assert codes <= ERRORS.keys()
    assert BatchSkipped.text.startswith("skipped")


def test_the_numbers_are_the_codes() -> None:
    assert f"Up to {ITEMS_MAX} " in PAGE
    assert f"leased for {LEASE_S} seconds" in PAGE
    assert (sum(PAUSES_S), "about two minutes" in PAGE) == (120, True)
    assert (BEGUN_MAX, "begun five times" in PAGE) == (5, True)
