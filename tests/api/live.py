"""A gateway whose real actors run in place of the queue: their refusals go out over HTTP."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from falcon import testing

from actors import context
from actors.queue import call_actors
from actors.queue.caller import CallInfo, CallReply
from actors.queue.registry import REGISTRY, modules_for
from api.app import create_app
from core.errors import ERRORS, GatewayBusy, TooManyRequestsError
from core.secrets.secretbox import SecretBox
from core.settings.settings import Settings
from models.db import base
from models.webhooks import outbox
from tests.api.conftest import NOW, Client, FakeQueues, Keys, make_settings
from tests.api.rows import add_invoice, add_merchant
from tests.models.addresses.test_pool import PUBLIC_KEY, add_chunk
from tests.models.builders import begin_scans

RATES: Final = json.loads(
    (Path(__file__).parents[2] / "core" / "rates" / "development_rates.json").read_text(encoding="utf-8")
)
ANSWERED_QUEUES: Final = ("invoices", "payouts", "bulk")


class LocalCaller:
    """Runs the actor of a call as a worker would, in the caller's thread."""

    def __init__(self) -> None:
        for module in modules_for(ANSWERED_QUEUES):
            importlib.import_module(module)

    def call(self, actor: str, *, queue: str, info: CallInfo, payload: bytes, wait_s: float | None = None) -> CallReply:
        del wait_s
        registration = REGISTRY[actor]
        assert registration.queue == queue
        bind: Any = registration.bind
        is_secret = bind.keywords["is_secret"]
        seen = dataclasses.replace(info, idem_key=None if is_secret else info.idem_key, is_secret=is_secret)
        answer = call_actors._outcome(bind.args[0], seen, payload)
        if answer.kind == "error":
            raise ERRORS[answer.code](answer.text)
        if answer.kind == "too_many":
            raise TooManyRequestsError(answer.retry_after_s)
        if answer.kind == "undecided":
            raise GatewayBusy
        return CallReply(body=answer.body, replayed=answer.replayed)


@dataclass
class Live:
    """The gateway, a merchant with keys of every kind (`shop`), and another merchant (key `pk_stranger`)."""

    client: Client
    keys: Keys
    queues: FakeQueues
    settings: Settings
    shop: UUID
    stranger: UUID

    def post(self, path: str, body: object, **options: Any) -> testing.Result:
        return self.client.post(path, body, **options)

    def invoice(self, **columns: Any) -> str:
        return str(add_invoice(self.shop, **columns))

    def agnostic(self, **columns: Any) -> str:
        """Return an open invoice whose buyer may choose."""
        return self.invoice(status="select", **later(), **columns)

    def choose(self, invoice_id: str, currency: str = "USDT", network: str | None = "ethereum") -> testing.Result:
        return self.client.public_post(f"/v1/pay/{invoice_id}/select", {"currency": currency, "network": network})

    def configure(self, **env: str) -> None:
        """Give the actors other settings."""
        context.configure(make_settings(DATABASE_URL=self.settings.database_url, **env))

    def forget_rates(self, condition: str = "true") -> None:
        base.execute(f"DELETE FROM rates WHERE {condition}")
        context.context().market.forget()

    def webhook_endpoint(self, merchant_id: UUID, url: str = "https://shop.example/hook") -> str:
        """Register an endpoint and return its secret."""
        with base.transaction():
            endpoint = outbox.register_endpoint(merchant_id, url, box=SecretBox(self.settings.secret_keys))
        return endpoint.secret


def later() -> dict[str, Any]:
    """Return the moments of an invoice that lives for another hour."""
    row = base.one("SELECT app_now(), app_now() + interval '1 hour'")
    assert row is not None
    now, end = row
    return {"created_at": now, "updated_at": now, "expires_at": end, "rate_expires_at": end}


def open_live(keys: Keys, queues: FakeQueues, database_url: str, *, now: Callable[[], float] = lambda: NOW) -> Live:
    """Set a gateway up on a fresh database, with rates and addresses."""
    shop, stranger = add_merchant("Shop"), add_merchant("Stranger")
    for kind in ("unified", "payment", "payout"):
        keys.add(f"pk_{kind}", kind, shop)  # type: ignore[arg-type]
    keys.add("pk_stranger", "unified", stranger)
    base.execute(
        "INSERT INTO rates (currency, usd, source, quoted_at, agreed_at)"
        " SELECT currency, usd::numeric, 'test', app_now(), app_now() FROM unnest(%s, %s) AS new (currency, usd)",
        (list(RATES), list(RATES.values())),
    )
    begin_scans()
    for chunk in range(2):
        add_chunk(chunk)
    # So that the two chunks are more than what is kept for signed calls.
    settings = make_settings(DATABASE_URL=database_url, ADDRESS_PUBLIC_KEY=PUBLIC_KEY, POOL_LOW="2")
    context.configure(settings)
    app = create_app(settings, caller=LocalCaller(), queues=queues, find_key=keys.find, now=now)
    return Live(Client(app), keys, queues, settings, shop, stranger)
