"""A bare aiohttp client: posts bodies over kept connections, checks nothing but the status. Run by bench.webhooks.

Reads a plan as JSON from stdin, writes what it found as JSON to stdout.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator

import aiohttp

# aiohttp's own default of connections.
CLIENTS = 100


async def work(session: aiohttp.ClientSession, url: str, bodies: Iterator[bytes]) -> None:
    for body in bodies:
        async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
            await response.read()
            assert response.status == 200


async def pour(url: str, body: bytes, count: int) -> float:
    bodies = iter([body] * count)
    async with aiohttp.ClientSession() as session:
        started = time.perf_counter()
        await asyncio.gather(*(work(session, url, bodies) for _ in range(CLIENTS)))
        return time.perf_counter() - started


def main() -> None:
    plan = json.load(sys.stdin)
    cpu_at = time.process_time()
    elapsed_s = asyncio.run(pour(plan["url"], plan["body"].encode(), plan["count"]))
    json.dump({"elapsed_s": elapsed_s, "cpu_ms": 1000 * (time.process_time() - cpu_at)}, sys.stdout)


if __name__ == "__main__":
    main()
