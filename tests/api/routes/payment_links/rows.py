"""Payment links for tests of the API: made over it, and checked out."""

from __future__ import annotations

from typing import Any, Final

from falcon import testing

from tests.api.live import Live

FIXED: Final = {"amount_mode": "fixed", "currency": "USD", "amount_fixed": "10"}
IN_USDT: Final = {"currency": "USDT", "network": "ethereum"}


def opened(live: Live, *, public_id: str = "pk_unified", **fields: Any) -> str:
    """Return the id of a new link, by default of 10 USD."""
    answer = live.post("/v1/payment/link", FIXED | fields, public_id=public_id)
    assert answer.status_code == 200, answer.text
    return str(answer.json["result"]["link_id"])


def checked_out(live: Live, link_id: str, **order: Any) -> testing.Result:
    """Check a link out as a buyer does, and return the answer."""
    return live.client.public_post(f"/v1/link/{link_id}/checkout", order)


def shown(live: Live, link_id: str, **headers: str) -> testing.Result:
    """Return what a buyer sees of a link."""
    return live.client.simulate_get(f"/v1/link/{link_id}", headers=headers)


def switch(live: Live, link_id: str, *, active: bool) -> testing.Result:
    """Switch a link as its merchant does."""
    return live.post("/v1/payment/link/toggle", {"link_id": link_id, "active": active})


def info(live: Live, link_id: str, **page: Any) -> dict[str, Any]:
    """Return a link as its merchant sees it."""
    answer = live.post("/v1/payment/link/info", {"link_id": link_id} | page)
    assert answer.status_code == 200, answer.text
    return dict(answer.json["result"])
