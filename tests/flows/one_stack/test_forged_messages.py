"""An intruder who can write to Redis moves no money. With real workers and a real node."""

from __future__ import annotations

import json
import time
import uuid
from decimal import Decimal
from typing import Any, Final

import psycopg2
import redis
from eth_account import Account

from tests.flows.stack import Stack
from tests.flows.test_payouts_under_fire import earn, recipient, start, until

QUEUE: Final = "payouts"
THIEF: Final = str(Account.from_key(b"\x66" * 32).address)
LIFE_MS: Final = 60_000


def forge(stack: Stack, actor: str, payload: dict[str, Any], **more: Any) -> None:
    """Write a call into Redis as the API's look there."""
    env = stack.ready["env"]
    call_id, now_ms = str(uuid.uuid4()), int(time.time() * 1000)
    arguments = {
        "call_id": call_id,
        "merchant_id": ask(
            stack, "SELECT merchant_id::text FROM api_keys WHERE public_id = %s", stack.ready["public_id"]
        ),
        "principal_id": "pk_made_up",
        "request_id": "forged",
        "idem_key": None,
        "fingerprint": "AAAA",
        "payload": json.dumps(payload),
        "until_ms": now_ms + LIFE_MS,
        "signature_key": None,
    }
    message = {
        "queue_name": QUEUE,
        "actor_name": actor,
        "args": [],
        "kwargs": arguments | more,
        "options": {"redis_message_id": call_id},
        "message_id": call_id,
        "message_timestamp": now_ms,
    }
    key = f"{env.get('REDIS_NAMESPACE', 'sluice')}:{QUEUE}"
    with redis.Redis.from_url(env["REDIS_URL"]) as server:
        server.hset(f"{key}.msgs", call_id, json.dumps(message))
        server.rpush(key, call_id)


def ask(stack: Stack, sql: str, *params: object) -> Any:
    connection = psycopg2.connect(stack.ready["env"]["DATABASE_URL"])
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(sql, params)
            row = cursor.fetchone()
            return row[0] if row else None
    finally:
        connection.close()


def test_a_forged_message_with_a_made_up_principal_moves_nothing(stack: Stack) -> None:
    paying = start(stack)
    earn(paying, 100)
    body = {"order_id": "forged", "amount": "40", "currency": "USDT", "network": "ethereum", "address": THIEF}

    forge(stack, "create_payout", body)
    forge(stack, "create_payout", body, stamp="development:" + "0" * 64)
    # Behind the forged ones in the same queue, so that these have had their turn when it is answered.
    honest = body | {"order_id": "honest", "amount": "2", "address": recipient(1)}
    uuid_ = paying.merchant.insist("/v1/payout", honest)["uuid"]
    until(lambda: paying.merchant.post("/v1/payout/info", {"uuid": uuid_}).result["status"] == "paid")

    named = "SELECT string_agg(order_id, ',') FROM payouts WHERE order_id IN ('forged', 'honest')"
    assert ask(stack, named) == "honest"
    assert ask(stack, "SELECT count(*) FROM spend_outputs WHERE lower(recipient) = lower(%s)", THIEF) == 0
    assert units_at(paying.buyer, stack, THIEF) == 0
    assert units_at(paying.buyer, stack, recipient(1)) == Decimal(2) * 10**6


def units_at(buyer: Any, stack: Stack, address: str) -> int:
    contract = stack.ready["tokens"]["ethereum"]["USDT"]
    data = "0x70a08231" + address.removeprefix("0x").lower().rjust(64, "0")
    return int(buyer.rpc("eth_call", {"to": contract, "data": data}, "latest"), 16)
