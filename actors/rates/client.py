"""Asks the public sources of rates, all at once. Called by actors.rates.asking, outside of any transaction.

A source gets a fixed time for everything, from the name to the last byte, and a fixed size. Its answer is taken as it
is: no redirects, no cookies, no decompression. Every request ends with a body or with a problem in our own words, which
do not contain the source's address, since it may hold the operator's key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import aiohttp
from yarl import URL

BUDGET_S: Final = 5.0
BODY_BYTES_MAX: Final = 1024 * 1024
CHUNK_BYTES: Final = 64 * 1024
OK: Final = 200
BAD_REQUEST: Final = 400

_HEADERS: Final = {"User-Agent": "sluice", "Accept": "*/*", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a source gave no usable body."""

    text: str
    # The body of status 400, in which a source may say that it does not know a symbol.
    refusal: bytes = b""


class _Unusable(Exception):  # noqa: N818 - becomes a Problem
    refusal = b""


K = TypeVar("K")


def fetch_all(
    urls: Mapping[K, str], *, budget_s: float = BUDGET_S, body_bytes_max: int = BODY_BYTES_MAX
) -> dict[K, bytes | Problem]:
    """Return each source's body or problem, within the budget even if sources hang."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_fetch_all(urls, budget_s, body_bytes_max))
    finally:
        # Not asyncio.run: it would wait for the thread of a name lookup that hangs.
        loop.close()


async def _fetch_all(urls: Mapping[K, str], budget_s: float, body_bytes_max: int) -> dict[K, bytes | Problem]:
    async with aiohttp.ClientSession(
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_HEADERS,
        timeout=aiohttp.ClientTimeout(total=None),
        connector=aiohttp.TCPConnector(force_close=True),
    ) as session:
        answers = await asyncio.gather(*(_fetch(session, url, budget_s, body_bytes_max) for url in urls.values()))
    return dict(zip(urls, answers, strict=True))


async def _fetch(session: aiohttp.ClientSession, url: str, budget_s: float, body_bytes_max: int) -> bytes | Problem:
    try:
        async with (
            asyncio.timeout(budget_s),
            session.get(URL(url, encoded=True), allow_redirects=False) as response,
        ):
            return await _body(response, body_bytes_max)
    except _Unusable as error:
        return Problem(text=str(error), refusal=error.refusal)
    except TimeoutError:
        return Problem(text=f"no answer within {budget_s:g} s")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return Problem(text=f"the connection failed ({type(error).__name__})")


async def _body(response: aiohttp.ClientResponse, body_bytes_max: int) -> bytes:
    if response.status not in {OK, BAD_REQUEST}:
        raise _Unusable(f"status {response.status}")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise _Unusable("the answer is compressed, which was not asked for")
    body = bytearray()
    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
        body += chunk
        if len(body) > body_bytes_max:
            raise _Unusable(f"the answer is longer than {body_bytes_max} bytes")
    if response.status == BAD_REQUEST:
        refused = _Unusable(f"status {response.status}")
        refused.refusal = bytes(body)
        raise refused
    return bytes(body)
