"""Cheques for tests of the API: created over it by a merchant with money, and moved on in the database."""

from __future__ import annotations

from typing import Any, Final, cast
from uuid import UUID

from models.db import base
from tests.api.live import Live
from tests.models.builders import USDT
from tests.models.payouts.builders import charge, fund

LINK: Final = {"currency": "USDT", "network": "ethereum", "amount": "25"}
ANN: Final = "0x52908400098527886E0F7030069857D2E4169EE7"
BOB: Final = "0x8617E340B3D01FA5F11F306F4090FD50E238070D"


def enrich(merchant_id: UUID, units: int = 1000 * USDT) -> None:
    """Give a merchant money, and make the network fee known."""
    fund(merchant_id, units)
    charge()


def linked(live: Live, *, public_id: str = "pk_unified", **fields: Any) -> dict[str, Any]:
    """Return a new cheque over 25 USDT as its creation answered."""
    enrich(live.shop if public_id == "pk_unified" else live.stranger)
    answer = live.post("/v1/payout/link", LINK | fields, public_id=public_id)
    assert answer.status_code == 200, answer.text
    return cast("dict[str, Any]", answer.json["result"])


def turn(link: dict[str, Any], status: str) -> None:
    """Make a cheque be in another status, whatever the books say."""
    base.execute(
        "UPDATE payout_links SET status = %s, claim_address = %s, claiming_since = app_now() WHERE id = %s",
        (status, ANN.lower(), link["link_id"]),
    )
