"""Registers a merchant's webhook endpoint (POST /v1/webhooks). The API calls it through the queue and waits."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from actors.calls import call_actor, recorded
from actors.context import context
from core import egress
from core.egress import EgressRefused
from core.errors import WebhookBadUrl
from core.schemas import RegisterWebhook, WebhookEndpoint
from core.secretbox import SecretBox
from models import outbox
from models.base import in_transaction

if TYPE_CHECKING:
    from collections.abc import Collection

    from actors.calls import CallInfo, CallReply

log = structlog.get_logger()

# A name server that does not answer must hold up neither the caller nor the queue.
LOOKUP_S: Final = 1.0
LOOKUP_THREADS: Final = 4

_decode: Final = msgspec.json.Decoder(RegisterWebhook)


@call_actor(queue="invoices", secret=True)
def register_webhook(info: CallInfo, payload: bytes) -> CallReply:
    """Replace the merchant's endpoint and return the new one with its secret, which is kept sealed."""
    if info.merchant_id is None:
        raise ValueError("a signed call has a merchant")
    settings = context().settings
    url = _decode.decode(payload).url
    check_endpoint_url(url, allow_private=settings.webhook_allow_private, own_hosts=settings.own_hosts)
    with recorded(info) as record:
        endpoint = outbox.register_endpoint(info.merchant_id, url, box=SecretBox(settings.secret_keys))
        answer = WebhookEndpoint(endpoint_id=str(endpoint.id), url=endpoint.url, secret=endpoint.secret)
        return record.store(msgspec.json.encode(answer))


def check_endpoint_url(url: str, *, allow_private: bool, own_hosts: Collection[str]) -> None:
    """Refuse what will never be delivered to. Raises WebhookBadUrl.

    A name without addresses, or whose name servers are slow, passes: a shop may register before its name is known
    everywhere, and every delivery checks the addresses again.
    """
    if in_transaction():
        raise RuntimeError("no network call inside a transaction")
    try:
        safe = egress.check_public_url(url, allow_private=allow_private, require_https=True, own_hosts=own_hosts)
        lookup = _lookups().submit(egress.resolve, safe.host, safe.port, allow_private=allow_private)
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
