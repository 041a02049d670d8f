"""Connects aiohttp to checked addresses only. Used for requests to URLs of strangers (webhooks).

A name is resolved once for each connection, and every address is checked before its socket opens, so that a name that
changes between check and connect gains nothing. aiohttp does not resolve literal addresses: these are checked when the
socket is opened.
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
from core.http.egress import EgressRefused, is_forbidden_address

# Each lookup blocks a thread; with few threads, some dead name servers would delay all merchants' deliveries.
LOOKUP_THREADS = 32
# The lookup threads that one merchant's names may take at once: a server that never answers blocks a thread for longer
# than LOOKUP_S, and a merchant can name any number of servers.
LOOKUPS_EACH = 4
LOOKUP_S = 5.0

# An answer is read in pieces of PIECE_BYTES and may have HEADS_MAX heads. A receiver that sends interim or unrequested
# answers without end would otherwise have them all read in one go, during which no other delivery gets a turn.
PIECE_BYTES = 4096
HEADS_MAX = 8

# The merchant for whom this task looks names up.
asking: ContextVar[str] = ContextVar("asking", default="")

_AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]


class PinnedResolver(AbstractResolver):
    """Gives aiohttp the checked addresses of a name. Raises EgressRefused, or OSError if the name has no address."""

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
        """Begin a lookup when its merchant has a free slot, which it keeps while the thread is blocked."""
        turn, loop = self._turns[asking.get()], asyncio.get_running_loop()
        await turn.acquire()

        def end(_lookup: Future[list[str]]) -> None:
            # If the loop was closed meanwhile, no task waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(turn.release)

        lookup = self._threads.submit(resolve, host, port, allow_private=self._allow_private)
        lookup.add_done_callback(end)
        return lookup

    async def close(self) -> None:
        """Shut down the lookup threads; a lookup that still runs ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class BriefHandler(ResponseHandler):
    """Reads a connection's answers, and closes a connection that sends too many heads."""

    _heads = 0

    def set_response_params(self, *arguments: Any, **options: Any) -> None:
        """Begin to read the answer to a request."""
        self._heads = 0
        super().set_response_params(*arguments, **options)

    def data_received(self, data: bytes) -> None:
        """Read received bytes in pieces, up to the limit of heads."""
        # Empty data is passed on too: it means something to the base class.
        for at in range(0, len(data) or 1, PIECE_BYTES):
            super().data_received(data[at : at + PIECE_BYTES])
            if self._heads > HEADS_MAX:
                self._refuse()
                return

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Count and pass on a parsed head."""
        self._heads += 1
        super().feed_data(data, size)

    def _refuse(self) -> None:
        if self.transport is not None:
            self.transport.close()
        # An answer that was complete before stays valid.
        self.set_exception(HttpProcessingError(message="heads without end"))


class PinnedConnector(TCPConnector):
    """A connector that opens sockets only to admitted addresses, and closes its resolver with itself."""

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
