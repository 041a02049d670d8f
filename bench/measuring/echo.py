"""The product's queue with an actor that returns its payload, without database and ledger. Used by bench.rpc.

The worker is `dramatiq bench.measuring.echo`; `call(payload)` is its client.
"""

from __future__ import annotations

import os
from uuid import uuid4

import dramatiq
import msgspec

from actors.queue.broker import make_broker
from actors.queue.call_specs import CallSpec
from actors.queue.caller import Caller, CallInfo, CallReply, call_actor
from core.settings.settings import load_settings

SETTINGS = load_settings(
    {
        "ENVIRONMENT": "development",
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "REDIS_URL": os.environ["BENCH_REDIS_URL"],
        "REDIS_NAMESPACE": "echo",
        "BASE_URL": "http://127.0.0.1",
        "PAY_URL": "http://127.0.0.1",
    }
)
broker = make_broker(SETTINGS, client_name="sluice-bench")


@call_actor(CallSpec(name="echo", queue="invoices"), body=msgspec.Raw)
def echo(info: CallInfo, body: msgspec.Raw) -> CallReply:
    """Return the payload."""
    del info
    return CallReply(body=bytes(body))


broker.serve({"invoices"})
dramatiq.set_broker(broker)
caller = Caller(broker, SETTINGS)


def call(payload: bytes) -> bytes:
    """Call the actor and wait for its answer."""
    info = CallInfo(call_id=uuid4(), merchant_id=None, request_id="", idem_key=None, fingerprint=b"")
    return caller.call("echo", queue="invoices", info=info, payload=payload).body
