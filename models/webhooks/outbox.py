"""Keeps the outbox: webhooks are written in the transaction of their event, and delivered later.

Called by the models that decide something (emit), by actors.webhooks.deliver (lease, record), by
actors.webhooks.calls and actors.webhooks.trial, and by api.health.gauges.
A delivery is pending, then perhaps retrying, and in the end delivered or dead.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from core.ids import NIL, uuid7
from core.secrets.secretbox import SecretBox
from models.db.after_commit import Bell, count, ring
from models.db.base import execute, in_transaction, is_true, rows, rows_as
from models.webhooks.rows import EndpointRecord

# The n-th entry is the wait after the n-th failed attempt (the specification, section Events).
DELAYS_S: Final = (10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600)
ATTEMPTS_MAX: Final = len(DELAYS_S) + 1
ENDED: Final = frozenset({"delivered", "dead"})

# Longer than an attempt may take in all; after it, another process sends the deliveries of one that died.
LEASE_S: Final = 30
# Merchants that one lease visits; if more wait, the next lease goes on from there.
WALK_MAX: Final = 256
# The beginning of a round over the merchants.
START: Final = str(NIL)

# Limits the rows read for the backlog metric; it needs no more to be alarming.
BACKLOG_WALK_MAX: Final = 1_000
BACKLOG_COUNT_MAX: Final = 10_000

SECRET_BYTES: Final = 32

BODIES_KEPT_DAYS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A registered endpoint, with the secret that is shown this once."""

    id: UUID
    url: str
    secret: str


class Delivery(NamedTuple):
    """A leased delivery. Its ids are text, since thousands a second are only passed on.

    The endpoint is the merchant's current one; None if he no longer has one.
    """

    id: str
    merchant_id: str
    event: str
    # The object's own url_callback, which has precedence over the endpoint's.
    url: str | None
    body: str
    request_id: str
    # The number of earlier attempts.
    attempts: int
    endpoint_id: str | None
    endpoint_url: str | None
    secret_box: str | None
    lease: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """The deliveries of a lease, and the last merchant that it visited; None at the end of the round."""

    deliveries: tuple[Delivery, ...]
    reached: str | None


class Backlog(NamedTuple):
    """The number of due deliveries, at most BACKLOG_COUNT_MAX, and the seconds that the oldest has been due."""

    due: int
    oldest_s: float


class Webhook(NamedTuple):
    """A webhook to write: see emit()."""

    merchant_id: UUID
    event: str
    object_id: UUID
    body: str
    url_callback: str | None
    request_id: str


class Attempt(NamedTuple):
    """The outcome of one attempt. It succeeded if there is no error."""

    id: str
    lease: str
    status_code: int | None
    error: str | None


def emit(
    merchant_id: UUID, event: str, object_id: UUID, body: str, *, url_callback: str | None = None, request_id: str = ""
) -> None:
    """Write a webhook in the caller's transaction; the body is sent as it is now, whatever changes later.

    Nothing is written if the merchant has no endpoint: without its secret not even a url_callback could be signed.
    """
    emit_all([Webhook(merchant_id, event, object_id, body, url_callback, request_id)])


def emit_all(webhooks: Sequence[Webhook]) -> None:
    """Write webhooks, in order, by one statement in the caller's transaction, as emit does."""
    if not in_transaction():
        raise RuntimeError("a webhook is written in the transaction of its event")
    if not webhooks:
        return
    merchants, names, objects, bodies, urls, requests = map(list, zip(*webhooks, strict=True))
    if execute(
        "INSERT INTO webhook_deliveries (id, merchant_id, event, object_id, url, body, request_id)"
        " SELECT w.id, merchant_id, w.event, w.object_id, NULLIF(w.url, ''), w.body, w.request_id"
        " FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::uuid[], %s::text[], %s::text[], %s::text[])"
        "  AS w (id, merchant_id, event, object_id, url, body, request_id)"
        " JOIN webhook_endpoints e USING (merchant_id) WHERE e.replaced_at IS NULL",
        ([uuid7() for _ in webhooks], merchants, names, objects, urls, bodies, requests),
    ):
        ring(Bell.DELIVER_WEBHOOKS)


def register_endpoint(merchant_id: UUID, url: str, *, box: SecretBox) -> Endpoint:
    """Give the merchant a new endpoint and secret, in an open transaction; the previous one stops at once.

    Waiting deliveries go to the new one, signed with the new secret. Raises LookupError for an unknown merchant.
    """
    # Simultaneous registrations run one after the other; new invoices of the merchant wait for neither.
    if not is_true("SELECT id FROM merchants WHERE id = %s FOR NO KEY UPDATE", (merchant_id,)):
        raise LookupError(f"no merchant {merchant_id}")
    execute(
        "UPDATE webhook_endpoints SET replaced_at = app_now() WHERE merchant_id = %s AND replaced_at IS NULL",
        (merchant_id,),
    )
    endpoint = Endpoint(id=uuid7(), url=url, secret=f"whsec_{secrets.token_urlsafe(SECRET_BYTES)}")
    sealed = box.seal(endpoint.secret.encode(), bound_to=binding(endpoint.id))
    EndpointRecord(id=endpoint.id, merchant_id=merchant_id, url=url, secret_box=sealed).write()
    return endpoint


def open_secret(endpoint_id: UUID | str, secret_box: str, *, box: SecretBox) -> str:
    """Return an endpoint's secret. Raises SecretBoxError."""
    return box.open(secret_box, bound_to=binding(endpoint_id)).decode()


def binding(endpoint_id: UUID | str) -> str:
    """Return the text by which a seal is bound to its row."""
    return f"webhook_endpoint:{endpoint_id}"


def active_endpoint(merchant_id: UUID) -> EndpointRecord | None:
    """Return the endpoint in force."""
    return EndpointRecord.first("merchant_id = %s AND replaced_at IS NULL", (merchant_id,))


def lease_due(*, limit: int, per_merchant: int, allowances: Mapping[str, int], after: str = START) -> Leased:
    """Lease due deliveries for LEASE_S, going round the merchants from the one after `after`.

    A merchant gets at most its allowance, or per_merchant where it has none. The cost does not grow with the backlog.
    """
    lease = str(uuid7())
    *leased, end = rows_as(
        Delivery,
        "SELECT *, %s AS lease FROM lease_webhooks(%s, %s, %s, %s, %s, %s, %s::uuid[], %s::integer[])",
        (lease, lease, LEASE_S, after, limit, WALK_MAX, per_merchant, _array(allowances), list(allowances.values())),
    )
    return Leased(deliveries=tuple(leased), reached=end.merchant_id)


# Past the end of the delays the array yields NULL, and so no next attempt.
_RECORD: Final = """
UPDATE webhook_deliveries d SET
    attempts = d.attempts + 1, lease = NULL, leased_until = NULL,
    last_status_code = a.status_code, last_error = a.error,
    status = CASE WHEN a.error IS NULL THEN 'delivered' WHEN d.attempts + 1 >= %s THEN 'dead' ELSE 'retrying' END,
    next_attempt_at = CASE WHEN a.error IS NOT NULL
        THEN app_now() + make_interval(secs => (%s::integer[])[d.attempts + 1]) END,
    delivered_at = CASE WHEN a.error IS NULL THEN app_now() END
FROM unnest(%s::uuid[], %s::uuid[], %s::integer[], %s::text[])
    WITH ORDINALITY AS a (id, lease, status_code, error, position)
WHERE d.id = a.id AND d.lease = a.lease
RETURNING a.position, d.status
"""


def record_attempts(attempts: Sequence[Attempt]) -> list[str | None]:
    """Write the outcomes of attempts, and when the next ones are due; return the new status of each, in order.

    None if another process has leased the delivery since; nothing is written then, as that process sends it again.
    """
    pairs = rows(
        _RECORD,
        (
            ATTEMPTS_MAX,
            list(DELAYS_S),
            _array(attempt.id for attempt in attempts),
            _array(attempt.lease for attempt in attempts),
            [attempt.status_code for attempt in attempts],
            [attempt.error for attempt in attempts],
        ),
    )
    statuses = dict(pairs)
    for status in ENDED.intersection(statuses.values()):
        count("sluice_webhooks_ended", status, by=list(statuses.values()).count(status))
    return [statuses.get(position) for position in range(1, len(attempts) + 1)]


def give_back(deliveries: Collection[Delivery]) -> None:
    """End leases of deliveries that were not attempted, so that another process can take them at once."""
    execute(
        "UPDATE webhook_deliveries d SET lease = NULL, leased_until = NULL"
        " FROM unnest(%s::uuid[], %s::uuid[]) AS a (id, lease) WHERE d.id = a.id AND d.lease = a.lease",
        (_array(delivery.id for delivery in deliveries), _array(delivery.lease for delivery in deliveries)),
    )


def read_backlog() -> Backlog:
    """Return the backlog. The cost is bounded, however many deliveries wait."""
    (backlog,) = rows_as(Backlog, "SELECT * FROM webhook_backlog(%s, %s)", (BACKLOG_WALK_MAX, BACKLOG_COUNT_MAX))
    return backlog


def _array(ids: Iterable[str]) -> str:
    """Return the literal of an array of UUIDs, which the driver would otherwise adapt one by one."""
    return f"{{{','.join(ids)}}}"


def prune(*, limit: int) -> int:
    """Forget the bodies of some finished deliveries older than BODIES_KEPT_DAYS; return how many.

    That they were delivered, and when, stays known.
    """
    return execute(
        "UPDATE webhook_deliveries SET body = '' WHERE id IN (SELECT id FROM webhook_deliveries"
        " WHERE created_at < app_now() - make_interval(days => %s) AND body <> '' AND status IN ('delivered', 'dead')"
        " ORDER BY created_at LIMIT %s)",
        (BODIES_KEPT_DAYS, limit),
    )
