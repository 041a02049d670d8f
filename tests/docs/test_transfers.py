"""docs/transfers.md: its samples are what the gateway takes and answers; its table names what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import msgspec

from api.routes import transfers
from core.errors import ERRORS
from core.http.requests import read_request
from core.merchants.transfer_schemas import ToPersonal, Transferred

PAGE: Final = (Path(__file__).parents[2] / "docs" / "transfers.md").read_text(encoding="utf-8")


def test_the_samples_are_accepted_and_answered() -> None:
    asked, answered = (json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))

    body: Any = read_request(ToPersonal, asked, own_hosts=frozenset())
    shown = msgspec.convert(answered["result"], Transferred)
    assert (body.currency, body.amount) == (shown.currency, shown.amount)


def test_the_table_has_the_endpoints_codes_with_their_status() -> None:
    by_code = {
        code: int(status) for code, status in re.findall(r"^\| `([a-z_.]+)` \| ([0-9]{3}) \|", PAGE, re.MULTILINE)
    }

    (endpoint,) = transfers.ENDPOINTS
    assert by_code == {error.code: ERRORS[error.code].status for error in endpoint.own_errors()}
