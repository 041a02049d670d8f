"""Registers a merchant's webhook endpoint, and sends a webhook again. The API calls it through the queue and waits."""

from __future__ import annotations

import functools
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from uuid import UUID

import structlog

from actors.context import context
from actors.queue.broker import single_flight
from actors.queue.call_specs import REDELIVER_WEBHOOK, REGISTER_WEBHOOK
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from actors.webhooks.lookup import resolve
from core.errors import GatewayBusy, WebhookBadUrl, WebhookNotFound
from core.http.egress import EgressRefused, check_public_url, with_ascii_host
from core.secrets.secretbox import SecretBox
from core.webhooks.schemas import Redeliver, RegisterWebhook, WebhookEndpoint
from models.db.base import in_transaction
from models.merchants import notices
from models.webhooks import deliveries, outbox, redelivery
from models.webhooks import views as webhook_views

log = structlog.get_logger()

# A name server that does not answer must delay neither the caller nor the queue.
LOOKUP_S: Final = 1.0
LOOKUP_THREADS: Final = 4


@call_actor(REGISTER_WEBHOOK, body=RegisterWebhook, secret=True)
def register_webhook(info: CallInfo, body: RegisterWebhook) -> CallReply:
    """Replace the merchant's endpoint (POST /v1/webhooks) and return it with its secret, which is kept sealed."""
    settings = context().settings
    with single_flight(f"register_webhook:{info.merchant()}") as is_mine:
        if not is_mine:
            # Otherwise names whose servers never answer would block the threads for long calls, one after the other.
            raise GatewayBusy("Another registration of this merchant is under way.")
        check_endpoint_url(body.url, allow_private=settings.webhook_allow_private, own_hosts=settings.own_hosts)
    with recorded(info) as record:
        url, box = with_ascii_host(body.url), SecretBox(settings.secret_keys)
        endpoint = outbox.register_endpoint(info.merchant(), url, box=box)
        notices.write(
            info.merchant(),
            f"Webhooks go to {endpoint.url}, signed with a new secret.",
            topic="webhooks",
            by=info.principal(),
        )
        answer = WebhookEndpoint(endpoint_id=str(endpoint.id), url=endpoint.url, secret=endpoint.secret)
        return record.store(answer)


@call_actor(REDELIVER_WEBHOOK, body=Redeliver)
def redeliver_webhook(info: CallInfo, body: Redeliver) -> CallReply:
    """Queue a delivery again, with its id and body, and return it (POST /v1/webhooks/redeliver)."""
    delivery_id = UUID(body.delivery_id)
    with recorded(info) as record:
        redelivery.requeue(info.merchant(), delivery_id)
        delivery = deliveries.find(info.merchant(), delivery_id)
        if delivery is None:
            raise WebhookNotFound
        return record.store(webhook_views.delivery(delivery))


def check_endpoint_url(url: str, *, allow_private: bool, own_hosts: Collection[str]) -> None:
    """Refuse a URL that webhooks will never be delivered to. Raises WebhookBadUrl.

    A name without addresses, or whose name servers are slow, passes: a shop may register before its name is known
    everywhere, and every delivery checks the addresses again.
    """
    if in_transaction():
        raise RuntimeError("no network call inside a transaction")
    try:
        safe = check_public_url(url, allow_private=allow_private, require_https=True, own_hosts=own_hosts)
        lookup = _lookups().submit(resolve, safe.host, safe.port, allow_private=allow_private)
        lookup.result(LOOKUP_S)
    except EgressRefused as refusal:
        raise WebhookBadUrl(f"url: {refusal}") from refusal
    except TimeoutError:
        lookup.cancel()
    except OSError as error:
        log.info("webhook.name_unknown", error=str(error))


@functools.cache
def _lookups() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="webhook-lookup")
