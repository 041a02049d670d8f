"""Measures the small shop: `python -m bench.small` runs the processes of Procfile.small with servers of their own.

Plays the story of the demo and reads memory and connections meanwhile, every half second. Then a second network's node
falls silent and a batch of 5,000 payments is sent, and the time of single calls is compared with that before.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from bench.idle import connections, pss_mb
from bench.measuring.report import Figure, show
from devstack.plan import ROOT, Plan
from devstack.shop.client import Client
from devstack.stack import Stack
from devstack.story.console import Console
from devstack.story.story import tell
from devstack.supervise.procfile import read_procfile

PROCFILE: Final = "Procfile.small"
LOOK_S: Final = 0.5
CALLS_S: Final = 40.0
PAUSE_S: Final = 0.1
ITEMS: Final = 5_000
GOAL_MB: Final = 400.0
GOAL_CONNECTIONS: Final = 20
GOAL_DELAY_S: Final = 1.0


class SmallStack(Stack):
    """A stack of few processes, with a network whose node may be silent."""

    silent_url = ""

    def environment(self) -> dict[str, str]:
        return super().environment() | ({"BSC_RPC_URLS": self.silent_url} if self.silent_url else {})


class Looks:
    """Reads the processes' memory and connections while a story runs, and keeps the most."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.memory: Counter[str] = Counter()
        self.total_mb = 0.0
        self.open: Counter[str] = Counter()

    def look(self) -> None:
        pids = json.loads((self._stack.plan.data / "pids.json").read_text())
        memory = {name: pss_mb(pids.get(name, [])) for name in read_procfile(ROOT / PROCFILE)}
        self.total_mb = max(self.total_mb, sum(memory.values()))
        self.memory |= Counter({name: round(mb) for name, mb in memory.items()})
        every = connections(self._stack.database_url, self._stack.redis_url)
        now = Counter(each.store for each in every)
        self.open |= now | Counter({"both": sum(now.values())})


@contextlib.contextmanager
def _stack() -> Iterator[SmallStack]:
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    # Not in a private home: PostgreSQL's own account has to reach it.
    folder.chmod(0o711)
    plan = Plan(data=folder, networks=("ethereum",), port=0, procfile=PROCFILE)
    # It accepts and never answers.
    with socket.create_server(("127.0.0.1", 0), backlog=512) as silent:
        SmallStack.silent_url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        stack = SmallStack(plan, inherited={"PATH": os.environ["PATH"]}, console=Console({}))
        try:
            stack.boot()
            yield stack
        finally:
            stack.stop()
            shutil.rmtree(folder, ignore_errors=True)


def _beside(stack: Stack, job: Any, *, each: Any = lambda: None) -> None:
    """Run a job in a thread while the supervisor goes on, and look now and then. Raises the job's error."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001 - raised below
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    next_at = 0.0

    def is_over() -> bool:
        nonlocal next_at
        if time.monotonic() >= next_at:
            each()
            next_at = time.monotonic() + LOOK_S
        return not thread.is_alive()

    stack.run_until(is_over)
    if failures:
        raise failures[0]


def call_for(client: Client, seconds: float) -> list[float]:
    """Create payments one after the other; return the seconds that each took."""
    took, ends_at = [], time.monotonic() + seconds
    while time.monotonic() < ends_at:
        began_at = time.monotonic()
        client.post("/v1/payment", {"amount": "5", "currency": "USD"}, idempotency_key=secrets.token_hex(8))
        took.append(time.monotonic() - began_at)
        time.sleep(PAUSE_S)
    return took


def call_beside_batch(client: Client) -> list[float]:
    """Send a batch and create single payments while it is worked off; return the seconds that each of these took."""
    items = [{"amount": "5", "currency": "USD", "order_id": f"b-{number}"} for number in range(ITEMS)]
    batch_id = client.post("/v1/payment/batch", {"payments": items})["batch_id"]
    took = call_for(client, CALLS_S)
    batch = client.post("/v1/batch/info", {"batch_id": batch_id, "limit": 1})
    print(f"\n  of the batch, {batch['succeeded']} items are done and {batch['failed']} failed")
    return took


def main() -> None:
    """Boot the small shop, play the story, send the batch and print."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with _stack() as stack:
        looks = Looks(stack)
        _beside(stack, lambda: tell(stack, Console({})), each=looks.look)
        key = stack.accounts.merchant
        client = Client(stack.base_url, public_id=key.public_id, secret=key.secret)
        quiet: list[float] = []
        busy: list[float] = []
        _beside(stack, lambda: quiet.extend(call_for(client, CALLS_S / 4)))
        _beside(stack, lambda: busy.extend(call_beside_batch(client)), each=looks.look)
        _print(looks, quiet, busy)


def _print(looks: Looks, quiet: Sequence[float], busy: Sequence[float]) -> None:
    print("\n  process     MB at most")
    for name, mb in looks.memory.items():
        print(f"  {name:<12}{mb:8}")
    delay = max(busy) - sorted(quiet)[len(quiet) // 2]
    stores = f"{looks.open['PostgreSQL']} to PostgreSQL, {looks.open['Redis']} to Redis at most"
    calls = f"{len(busy)} calls, the longest {max(busy):.2f} s; before that {max(quiet):.2f} s"
    show(
        "The small shop",
        [
            Figure(name="memory, MB", ratio=looks.total_mb, goal=GOAL_MB, better="at most"),
            Figure(
                name="connections to PostgreSQL",
                ratio=looks.open["PostgreSQL"],
                goal=GOAL_CONNECTIONS,
                better="at most",
                detail=stores,
            ),
            Figure(
                name="a call's delay by batch and silent node, s",
                ratio=delay,
                goal=GOAL_DELAY_S,
                better="at most",
                detail=calls,
            ),
        ],
    )


if __name__ == "__main__":
    main()
