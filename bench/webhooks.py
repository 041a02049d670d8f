"""Measures deliveries: `python -m bench.webhooks`, one or two minutes; `--quick`, less than half of that.

The outbox is filled. Then the webhooks worker of the Procfile is notified, and delivers all of it to a receiver on this
machine: lease, sign, send, record. In turns with it, a bare aiohttp client posts as many bodies to the same receiver.
The worker's time ends when the last delivery is recorded, the client's with its last answer.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from actors.queue.broker import make_broker
from api.routes.webhooks import EXAMPLE
from bench.measuring.harness import ROOT, Meter, Round, Site, inherited
from bench.measuring.quiet import beside, until_it_holds
from bench.measuring.report import Figure, median_cpu, show, show_cpu
from core.ids import uuid7
from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from core.settings.settings import load_settings
from devstack.supervise.procfile import read_procfile
from models.db import base
from models.db.migrate import migrate
from models.merchants import rows as merchants
from models.webhooks import outbox

GOAL: Final = 0.9
MERCHANTS: Final = 8
ROUND_LIMIT_S: Final = 20.0
# About as long as the body of a real invoice.paid.
BODY: Final = json.dumps(EXAMPLE["payload"])


# Deliveries of one round.
FULL: Final = 10_000
QUICK: Final = 3_000
WARM_UP: Final = 500


class Product:
    """The webhooks worker, with a database of its own."""

    def __init__(self, site: Site, url: str) -> None:
        database_url = site.create_database("webhooks")
        migrate(database_url)
        base.connect(database_url)
        environment = {
            "ENVIRONMENT": "development",
            "LOG_LEVEL": "warning",
            "DATABASE_URL": database_url,
            "REDIS_URL": site.valkey.url,
            "SECRET_KEYS": DEVELOPMENT_SECRET_KEYS,
            # Every worker requires a key; delivering verifies no address.
            "ADDRESS_PUBLIC_KEY": base64.b64encode(
                Ed25519PrivateKey.generate().public_key().public_bytes_raw()
            ).decode(),
            "WEBHOOK_ALLOW_PRIVATE": "1",
        }
        self._shops = [_shop(url) for _ in range(MERCHANTS)]
        self._broker = make_broker(load_settings(environment), client_name="sluice-bench")
        self._worker = site.start("webhooks", read_procfile(ROOT / "Procfile")["webhooks"], environment)
        self._programs = {
            "dramatiq": self._worker.pid,
            "postgres": site.postgres.pid or 0,
            "redis": site.valkey.pid or 0,
        }

    def deliver(self, count: int) -> Round:
        """Fill the outbox, notify the worker, and wait until everything is recorded."""
        base.execute("TRUNCATE webhook_deliveries")
        base.execute(
            "INSERT INTO webhook_deliveries (id, merchant_id, event, object_id, body)"
            " SELECT id, shop, 'invoice.paid', id, %s FROM unnest(%s::uuid[], %s::uuid[]) AS made (id, shop)",
            (
                BODY,
                [uuid7() for _ in range(count)],
                [self._shops[number % len(self._shops)] for number in range(count)],
            ),
        )
        meter = Meter(self._programs)
        started = time.time()
        self._broker.ring("deliver_webhooks")
        self._worker.wait_until(_is_empty, limit_s=ROUND_LIMIT_S)
        row = base.one(
            "SELECT extract(epoch FROM max(delivered_at))::float8, count(delivered_at), max(attempts)"
            " FROM webhook_deliveries"
        )
        assert row is not None
        ended, delivered, attempts = row
        assert (delivered, attempts) == (count, 1), f"{delivered} of {count} delivered, in up to {attempts} attempts"
        return Round(count=count, elapsed_s=ended - started, latencies_ms=(), cpu_ms=meter.per_request(count))


def _shop(url: str) -> object:
    merchant_id = merchants.create_merchant("Benchmark").id
    with base.transaction():
        outbox.register_endpoint(merchant_id, url, box=SecretBox(DEVELOPMENT_SECRET_KEYS))
    return merchant_id


def _is_empty() -> bool:
    """Return True if no delivery waits. One probe of an index: the check must not cost much itself."""
    return base.one("SELECT 1 FROM webhook_deliveries WHERE status IN ('pending', 'retrying') LIMIT 1") is None


def post_bare(url: str, count: int) -> Round:
    """Post as many bodies with the bare client."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.baselines.webhook_client"],
        input=json.dumps({"url": url, "body": BODY, "count": count}),
        env=inherited(),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=ROUND_LIMIT_S,
        check=True,
    )
    measured = json.loads(done.stdout)
    return Round(
        count=count, elapsed_s=measured["elapsed_s"], latencies_ms=(), cpu_ms={"client": measured["cpu_ms"] / count}
    )


@contextlib.contextmanager
def receiver(site: Site) -> Iterator[str]:
    """Start the receiver that both sides post to."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.baselines.webhook_receiver"],
        env={**inherited(), **site.leash.env},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
    finally:
        process.kill()
        process.communicate()


def posts_at(url: str) -> int:
    """Return how many posts the receiver has seen."""
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - loopback
        return int(answer.read())


def measure(product: Product, url: str, count: int, *, number: int = 0) -> tuple[Round, Round]:
    """Run both sides once. The receiver must have all bodies, whatever the sender reports."""
    before = posts_at(url)
    # The sides take turns to begin: the second one finds the machine warmer.
    if number % 2:
        bare, ours = post_bare(url, count), product.deliver(count)
    else:
        ours, bare = product.deliver(count), post_bare(url, count)
    assert posts_at(url) - before == 2 * count
    return ours, bare


def report(pairs: Sequence[tuple[Round, Round]]) -> None:
    """Print the ratio with its goal, and the processor time of a delivery by program."""
    ratios = [ours.rate / bare.rate for ours, bare in pairs]
    ours, bare = (median(side.rate for side in sides) for sides in zip(*pairs, strict=True))
    detail = f"{ours:,.0f}/s to {bare:,.0f}/s; {min(ratios):.2f} to {max(ratios):.2f}"
    show(
        "Webhooks",
        [Figure(name="deliveries/s ÷ bare client", ratio=median(ratios), goal=GOAL, better="at least", detail=detail)],
    )
    show_cpu(median_cpu({"delivery": [each for each, _ in pairs], "bare_post": [each for _, each in pairs]}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of the deliveries")
    count = QUICK if parser.parse_args().quick else FULL
    pairs: list[tuple[Round, Round]] = []
    with beside(), Site() as site, receiver(site) as url:
        product = Product(site, url)
        measure(product, url, WARM_UP)

        def pair(number: int) -> list[float]:
            pairs.append(measure(product, url, count, number=number))
            return [pairs[-1][0].rate / pairs[-1][1].rate]

        until_it_holds(pair)
        report(pairs)


if __name__ == "__main__":
    main()
