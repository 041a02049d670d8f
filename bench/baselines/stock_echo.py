"""Baseline *stock echo*: dramatiq's own Redis broker and results, with an actor that returns what it gets. Frozen.

The worker is `dramatiq bench.baselines.stock_echo`; `call(payload)` is its client.
"""

from __future__ import annotations

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

URL = os.environ["BENCH_REDIS_URL"]
WAIT_MS = 10_000

broker = RedisBroker(url=URL, namespace="stock-echo")
broker.add_middleware(Results(backend=RedisBackend(url=URL, namespace="stock-echo-results")))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True, max_retries=0)
def echo(payload: str) -> str:
    """Return the payload."""
    return payload


def call(payload: bytes) -> bytes:
    """Send a message and wait for its result."""
    found: str = echo.send(payload.decode()).get_result(block=True, timeout=WAIT_MS)
    return found.encode()
