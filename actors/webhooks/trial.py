"""Tests a merchant's endpoint with a webhook without an object (POST /v1/webhooks/test). The API waits for the outcome.

A receiver may take all of its ten seconds, so trials have places of their own: they take no slot from deliveries, no
thread from the quick queues, and at most TRIALS_MAX threads of the workers for long calls, one for each merchant.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final
from uuid import UUID

import msgspec

from actors.context import context
from actors.queue.broker import single_flight
from actors.queue.call_specs import TRY_WEBHOOK
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from actors.webhooks.sender import TOTAL_S, Outcome, Post, Sender
from core.errors import GatewayBusy, WebhookNoUrl
from core.ids import uuid7
from core.secrets.secretbox import SecretBox
from core.settings.settings import Settings
from core.webhooks.schemas import TryWebhook, WebhookTrial
from models.db.base import in_transaction
from models.queue import calls
from models.webhooks import outbox
from models.webhooks import views as webhook_views

# Trials under way in one process: well below its threads, which long calls of others need.
TRIALS_MAX: Final = 4
EVENT_DEFAULT: Final = "invoice.paid"
# Ends a wait that the sender's own time limit should have ended.
COLLECT_S: Final = TOTAL_S + 2

_places: Final = threading.BoundedSemaphore(TRIALS_MAX)


@call_actor(TRY_WEBHOOK, body=TryWebhook)
def try_webhook(info: CallInfo, body: TryWebhook) -> CallReply:
    """Send one webhook to the endpoint in force, and return its outcome."""
    event = body.event or EVENT_DEFAULT
    with _place(info.merchant()):
        post = _post(info.merchant(), event)
        outcome = _send(post)
    answer = WebhookTrial(
        status_code=outcome.status_code,
        delivered=outcome.error is None,
        duration_ms=round(outcome.took_s * 1000),
        error=outcome.error,
    )
    with recorded(info) as record:
        return record.store(answer)


@contextlib.contextmanager
def _place(merchant_id: UUID) -> Iterator[None]:
    """Take a place, or refuse at once: a thread that waited for one would be lost to deliveries."""
    if not _places.acquire(blocking=False):
        raise GatewayBusy
    try:
        with single_flight(calls.long_call(merchant_id)) as is_mine:
            if not is_mine:
                raise GatewayBusy("Another long call of this merchant is under way.")
            yield
    finally:
        _places.release()


def _post(merchant_id: UUID, event: str) -> Post:
    endpoint = outbox.active_endpoint(merchant_id)
    if endpoint is None:
        raise WebhookNoUrl("No endpoint is registered.")
    return Post(
        key=0,
        id=str(uuid7()),
        merchant_id=str(merchant_id),
        event=event,
        url=endpoint.url,
        body=msgspec.json.encode(webhook_views.trial(event)),
        secret=outbox.open_secret(endpoint.id, endpoint.secret_box, box=SecretBox(context().settings.secret_keys)),
        is_endpoint=True,
    )


def _send(post: Post) -> Outcome:
    if in_transaction():
        raise RuntimeError("no network call inside a transaction")
    with _sender(context().settings) as sender:
        sender.send([post])
        outcomes = sender.collect(COLLECT_S)
    if not outcomes:
        raise TimeoutError("the sender kept its post past its time limit")
    return outcomes[0]


def _sender(settings: Settings) -> Sender:
    return Sender(allow_private=settings.webhook_allow_private, own_hosts=settings.own_hosts)
