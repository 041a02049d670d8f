"""Baseline *direct*: the signature and the one statement, without a queue. Frozen.

`gunicorn -c bench/baselines/gunicorn.conf.py bench.baselines.direct:app`
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import deque
from typing import Any
from uuid import UUID

import falcon
import msgspec
import psycopg2
import psycopg2.extras
from uuid_utils.compat import uuid7

from bench.baselines import order as baseline_order

KEY_CACHE_S = 1.0
STASH = 16

psycopg2.extras.register_uuid()
_local = threading.local()


def query(sql: str, params: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
    """Run one statement on the thread's own connection; the statement is the transaction."""
    connection = getattr(_local, "connection", None)
    if connection is None:
        connection = _local.connection = psycopg2.connect(os.environ["BENCH_DATABASE_URL"])
        connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute(sql, params)
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


class Keys:
    """Merchants' keys, remembered for a second."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[UUID, str, float]] = {}

    def find(self, public_id: str) -> tuple[UUID, str]:
        known = self._known.get(public_id)
        if known is None or known[2] <= time.monotonic():
            rows = query(
                "SELECT merchant_id, secret_box FROM api_keys WHERE public_id = %s AND revoked_at IS NULL",
                (public_id,),
            )
            if not rows:
                raise falcon.HTTPUnauthorized
            known = self._known[public_id] = (*rows[0], time.monotonic() + KEY_CACHE_S)
        return known[0], known[1]


class Addresses:
    """A few addresses claimed ahead."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: deque[tuple[int, str]] = deque()

    def take(self) -> tuple[int, str]:
        with self._lock:
            if not self._ready:
                self._ready.extend(query(baseline_order.CLAIM, (STASH,)))
            return self._ready.popleft()


class Payments:
    """POST /v1/payment."""

    def __init__(self) -> None:
        self._keys = Keys()
        self._addresses = Addresses()
        self._rate: int | None = None

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        body = req.bounded_stream.read()
        merchant_id, secret = self._keys.find(req.env["HTTP_X_PUBLIC_ID"])
        if not baseline_order.is_signed(
            secret, req.env["HTTP_X_TIMESTAMP"], req.path, body, req.env["HTTP_X_SIGNATURE"]
        ):
            raise falcon.HTTPUnauthorized
        order = baseline_order.read_order(body)
        ordinal, address = self._addresses.take()
        columns = baseline_order.invoice_columns(
            order,
            merchant_id=merchant_id,
            ordinal=ordinal,
            address=baseline_order.display(address),
            units=baseline_order.payer_units(baseline_order.cents_of(order.amount), self._coin_usd()),
        )
        rows = query(
            baseline_order.CREATE,
            (
                uuid7(),
                req.env["HTTP_IDEMPOTENCY_KEY"],
                hashlib.sha256(body).digest(),
                1,
                msgspec.json.encode(columns).decode(),
                baseline_order.LIFETIME_S,
                baseline_order.QUOTE_S,
                baseline_order.FAMILY,
                msgspec.json.encode(baseline_order.answer(order, columns)).decode()[:-1],
            ),
        )
        outcome, answer = rows[0]
        if outcome != "created":
            raise falcon.HTTPConflict(title=outcome)
        resp.content_type = "application/json"
        resp.data = b'{"state":0,"result":' + answer.encode() + b"}"

    def _coin_usd(self) -> int:
        if self._rate is None:
            self._rate = int(query("SELECT trunc(usd * 10::numeric ^ 18) FROM rates WHERE currency = 'USDT'")[0][0])
        return self._rate


app = falcon.App()
app.add_route("/v1/payment", Payments())
