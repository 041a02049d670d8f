"""A gateway for tests of cheques: its context, its calls, and what the API adds to their responses."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec

from actors import context
from actors.payout_links.calls import cancel_payout_link, create_payout_link, create_payout_links
from actors.payout_links.claims import claim_payout_link
from actors.queue import call_actors
from api.routes.payout_links.calls import _read
from core.http.requests import read_request
from core.payout_links.schemas import Claim, CreatePayoutLink
from core.payout_links.tokens import ClaimTokens, token_hash
from models.payout_links.views import with_tokens
from models.queue import calls
from models.queue.calls import CallInfo, ReplayedError
from tests.actors import asking
from tests.actors.asking import ask, performer
from tests.models.payouts.builders import charge
from tests.models.queue.builders import info

PAY_URL: Final = "https://pay.example"
# With and without the development key.
ROTATED: Final = (
    "new:bmV3LW5ldy1uZXctbmV3LW5ldy1uZXctbmV3LW5ldy0=,development:c2x1aWNlLWRldmVsb3BtZW50LW9ubHkta2V5LTAwMDA="
)
ROTATED_AWAY: Final = ROTATED.partition(",")[0]
LINK: Final = {"currency": "USDT", "network": "ethereum", "amount": "25"}
ANN: Final = "0x52908400098527886E0F7030069857D2E4169EE7"
BOB: Final = "0x8617E340B3D01FA5F11F306F4090FD50E238070D"


def configure(database: str, **env: str) -> None:
    """Configure the actors for ethereum and bsc, where a payout of USDT costs 1.2."""
    asking.configure(database, **{"PAY_URL": PAY_URL} | env)
    charge()


def shown(answer: bytes) -> dict[str, Any]:
    """Return the API's form of a response."""
    settings = context.context().settings
    return with_tokens(msgspec.json.decode(answer), ClaimTokens(settings.secret_keys), settings.pay_url)


def create(merchant_id: UUID, call: CallInfo | None = None, **fields: Any) -> dict[str, Any]:
    body = read_request(CreatePayoutLink, LINK | fields, own_hosts=frozenset())
    return shown(performer(create_payout_link)(call or info(merchant_id), msgspec.json.encode(body)).body)


def create_batch(merchant_id: UUID, *items: Any, call: CallInfo | None = None) -> dict[str, Any]:
    body = msgspec.json.encode([_read(item) for item in items])
    return shown(performer(create_payout_links)(call or info(merchant_id), body).body)


def cancel(merchant_id: UUID, link_id: str) -> dict[str, Any]:
    answer: dict[str, Any] = ask(cancel_payout_link, info(merchant_id), {"link_id": link_id})
    return answer


def claim(token: str, address: str = ANN, *, memo: str = "", call: CallInfo | None = None) -> dict[str, Any]:
    message = Claim(token_hash=token_hash(token).hex(), address=address, memo=memo)
    answer: dict[str, Any] = ask(claim_payout_link, call or info(None), message)
    return answer


def replayed(error: ReplayedError) -> dict[str, Any]:
    """Return the response to a repetition."""
    answer = call_actors._again(error)
    assert answer.kind == "done"
    return shown(answer.body)


def give_up(call: CallInfo) -> None:
    """End a caller's wait."""
    assert calls.abandon(call) is None
