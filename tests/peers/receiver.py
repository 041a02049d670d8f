"""A merchant's webhook receiver, written from the specification alone. Used by tests, flows and the demo.

It speaks HTTP itself, so that it sees the exact bytes that were sent, and can give every kind of bad answer.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import hmac
import json
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, Self

WINDOW_S = 300
READ_MAX = 1 << 20


class ForgedError(Exception):
    """This webhook does not come from the holder of the secret, or is too old."""


def verify(secret: str, headers: dict[str, str], body: bytes, *, now: float | None = None) -> dict[str, Any]:
    """Check a webhook as the specification requires of consumers, and return its body. Raises ForgedError."""
    timestamp = headers.get("x-webhook-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdigit()):
        raise ForgedError("no timestamp")
    if abs((time.time() if now is None else now) - int(timestamp)) > WINDOW_S:
        raise ForgedError("not sent just now")
    expected = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), headers.get("x-webhook-signature", "").encode()):
        raise ForgedError("wrong signature")
    parsed = json.loads(body)
    if not isinstance(parsed, dict):
        raise ForgedError("no object")
    return parsed


@dataclasses.dataclass(frozen=True, slots=True)
class Hook:
    """A request as it came. Header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def id(self) -> str:
        return self.headers["x-webhook-id"]

    def verified(self, secret: str) -> dict[str, Any]:
        """The parsed body, judged at the moment of arrival."""
        return verify(secret, self.headers, self.body, now=self.at)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How to answer: the delays come before the head and between the body's pieces; drop closes without a word."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b"ok"
    # How often the body is sent; the announced length is for all of them.
    repeat: int = 1
    head_delay_s: float = 0
    piece_delay_s: float = 0
    # Nothing is answered before it is set.
    hold: threading.Event | None = None
    raw: bytes | None = None
    drop: bool = False

    def head(self) -> bytes:
        length = str(len(self.body) * self.repeat)
        lines = [f"HTTP/1.1 {self.status} X", *(f"{name}: {value}" for name, value in self.headers)]
        return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()


OK = Answer()
Behaviour = Callable[[Hook], Answer]


class Receiver:
    """Listens on loopback from start() to stop(), in a thread of its own, and keeps what it got in `hooks`."""

    def __init__(
        self, answer: Answer | Behaviour = OK, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> None:
        self.behaviour: Behaviour = answer if callable(answer) else lambda _: answer
        self.hooks: list[Hook] = []
        # Body bytes that were written, and connections that were opened.
        self.sent_bytes = 0
        self.connections = 0
        self.under_way = 0
        self.under_way_max = 0
        self.port = 0
        self._host = host
        self._tls = tls
        self._arrival = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="receiver", daemon=True)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}/hook"

    def start(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        return self

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def wait_for(self, count: int, *, timeout_s: float = 60) -> list[Hook]:
        """Return the hooks as soon as there are count of them; fails where they do not come."""
        with self._arrival:
            came = self._arrival.wait_for(lambda: len(self.hooks) >= count, timeout_s)
        assert came, f"{len(self.hooks)} of {count} webhooks within {timeout_s} s"
        return list(self.hooks)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls, limit=READ_MAX)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        hook = await _read(reader)
        self.under_way += 1
        self.under_way_max = max(self.under_way, self.under_way_max)
        with self._arrival:
            self.hooks.append(hook)
            self._arrival.notify_all()
        try:
            return await self._answer(self.behaviour(hook), writer)
        finally:
            self.under_way -= 1

    async def _answer(self, answer: Answer, writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(answer.head_delay_s)
        while answer.hold is not None and not answer.hold.is_set():  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.01)
        if answer.drop:
            return False
        if answer.raw is not None:
            # No further answer makes sense behind such bytes.
            writer.write(answer.raw)
            return False
        writer.write(answer.head())
        for _ in range(answer.repeat):
            await asyncio.sleep(answer.piece_delay_s)
            writer.write(answer.body)
            self.sent_bytes += len(answer.body)
            await writer.drain()
        return True


async def _read(reader: asyncio.StreamReader) -> Hook:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request, *lines = head[:-4].split("\r\n")
    pairs = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    headers = dict(pairs)
    assert len(headers) == len(pairs), "a header was sent twice"
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, target, _ = request.split(" ")
    return Hook(method=method, target=target, headers=headers, body=body, at=time.time())
