"""docs/emails.md: its samples are what the gateway takes and answers; its table names what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import msgspec

from api.routes.invoices import history
from core.errors import ERRORS
from core.http.requests import read_request
from core.invoices.schemas import QueuedEmail, SendPaymentEmail

PAGE: Final = (Path(__file__).parents[2] / "docs" / "emails.md").read_text(encoding="utf-8")


def test_the_samples_are_accepted_and_answered() -> None:
    asked, answered = (json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))

    body: Any = read_request(SendPaymentEmail, asked, own_hosts=frozenset())
    assert msgspec.convert(answered["result"], QueuedEmail) == QueuedEmail(email=body.email, queued=True)


def test_the_table_has_the_endpoints_codes_with_their_status() -> None:
    by_code = {
        code: int(status) for code, status in re.findall(r"^\| `([a-z_.]+)` \| ([0-9]{3}) \|", PAGE, re.MULTILINE)
    }

    (endpoint,) = [endpoint for endpoint in history.ENDPOINTS if endpoint.name == "sendPaymentEmail"]
    assert by_code == {error.code: ERRORS[error.code].status for error in endpoint.own_errors()}
