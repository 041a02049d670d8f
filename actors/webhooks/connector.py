"""Connects aiohttp to checked addresses only. Used for requests to URLs of strangers (webhooks).

A name is resolved once for each connection, and every address is checked on the way to the socket, so that a name
which changes between check and connect gains nothing. aiohttp does not resolve literal addresses: the socket's gate
judges these.
"""

import asyncio
import socket
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

from actors.webhooks.lookup import resolve
from core.net.egress import EgressRefused, is_forbidden_address

# Lookups block a thread each; with few of them, some dead name servers would hold up everybody's deliveries.
LOOKUP_THREADS = 32
# Of those, one merchant's names have so many at once: a server that never answers keeps a thread for longer than
# anybody waits for it, and a merchant can name as many servers as he likes.
LOOKUPS_EACH = 4
LOOKUP_S = 5.0

# An answer is read in pieces of so many bytes, and with so many heads: whoever sends interim ones without end, or
# answers that nobody asked for, would have them all read in one go, in which no other delivery gets a turn.
PIECE_BYTES = 4096
HEADS_MAX = 8

# In whose name this task looks names up.
asking: ContextVar[str] = ContextVar("asking", default="")

_AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]


class PinnedResolver(AbstractResolver):
    """Gives aiohttp the checked addresses of a name. Raises EgressRefused, or OSError when there are none."""

    def __init__(self, *, allow_private: bool = False) -> None:
        self._allow_private = allow_private
        self._threads = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="lookup")
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(LOOKUPS_EACH))

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Look the name up once and check every address."""
        async with asyncio.timeout(LOOKUP_S):
            addresses = await asyncio.wrap_future(await self._look_up(host, port))
        results = [_result(host, address, port) for address in addresses]
        return [result for result in results if family in {socket.AF_UNSPEC, result["family"]}]

    async def _look_up(self, host: str, port: int) -> Future[list[str]]:
        """Begin a lookup when it is its merchant's turn, which lasts as long as the thread is blocked."""
        turn, loop = self._turns[asking.get()], asyncio.get_running_loop()
        await turn.acquire()

        def end(_lookup: Future[list[str]]) -> None:
            # A loop that was closed meanwhile has nobody left who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(turn.release)

        lookup = self._threads.submit(resolve, host, port, allow_private=self._allow_private)
        lookup.add_done_callback(end)
        return lookup

    async def close(self) -> None:
        """Let go of the threads; a lookup that still runs ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class BriefHandler(ResponseHandler):
    """Reads what comes over a connection, and ends one that brings more heads than an answer has."""

    _heads = 0

    def set_response_params(self, *arguments: Any, **options: Any) -> None:
        """Begin to read the answer to a request."""
        self._heads = 0
        super().set_response_params(*arguments, **options)

    def data_received(self, data: bytes) -> None:
        """Read what came, as far as it can belong to an answer."""
        # What is empty is read, too: it says something to the base.
        for at in range(0, len(data) or 1, PIECE_BYTES):
            super().data_received(data[at : at + PIECE_BYTES])
            if self._heads > HEADS_MAX:
                self._refuse()
                return

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Take a head that was read."""
        self._heads += 1
        super().feed_data(data, size)

    def _refuse(self) -> None:
        if self.transport is not None:
            self.transport.close()
        # What was answered before stays answered.
        self.set_exception(HttpProcessingError(message="heads without end"))


class PinnedConnector(TCPConnector):
    """A connector whose sockets only open towards admitted addresses, and which closes its resolver with itself."""

    def __init__(self, *, allow_private: bool = False, limit: int = 100, limit_per_host: int = 0) -> None:
        self._pinned = PinnedResolver(allow_private=allow_private)
        super().__init__(
            resolver=self._pinned,
            use_dns_cache=False,
            limit=limit,
            limit_per_host=limit_per_host,
            socket_factory=partial(_open_socket, allow_private=allow_private),
        )
        self._factory = partial(_reader, loop=self._loop)

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Close connections and resolver."""
        await super().close(abort_ssl=abort_ssl)
        await self._pinned.close()


def _reader(loop: asyncio.AbstractEventLoop) -> ResponseHandler:
    return BriefHandler(loop)


def _result(name: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(
        hostname=name,
        host=address,
        port=port,
        family=family,
        proto=socket.IPPROTO_TCP,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )


def _open_socket(info: _AddressInfo, *, allow_private: bool) -> socket.socket:
    family, kind, protocol, _, address = info
    if is_forbidden_address(str(address[0]), allow_loopback=allow_private):
        raise EgressRefused("the address is private or reserved")
    return socket.socket(family, kind, protocol)
