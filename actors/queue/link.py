"""Speaks to Redis: one raw connection a thread, several commands in one write.

Used by actors.queue.broker and its consumer.
redis-py's clients retry, and give up reading after five seconds: a retried pipeline enqueues twice, a short timeout
breaks every blocking wait. So connections are driven by hand here: nothing is repeated, and each wait names its end.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import redis
from dramatiq.errors import ConnectionClosed
from hiredis import pack_command
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError
from redis.retry import Retry

Command = tuple[str | bytes | int | float, ...]

CONNECT_TIMEOUT_S: Final = 2.0
# How long Redis may take over an answer that needs no waiting.
REPLY_TIMEOUT_S: Final = 5.0
# A connection unused for this long may have been closed at the other end; looking costs a system call.
IDLE_CHECK_S: Final = 0.5
# How often the offset to Redis's clock is measured again.
CLOCK_SAMPLE_S: Final = 5.0

_pack: Final = cast("Callable[[Command], bytes]", pack_command)
_TIME: Final = _pack(("TIME",))

_NO_SCRIPT: Final = object()


class LinkDownError(ConnectionClosed):
    """Redis did not answer, or refused. Whether it carried the commands out is unknown."""


class _Session(threading.local):
    """A thread's own connection; a forked child must not speak on its parent's."""

    # redis-py's connections are not typed.
    connection: Any = None
    process_id = 0
    used_at = 0.0
    # What its socket waits for now.
    timeout_s = 0.0


class RedisLink:
    """Sends commands of the calling thread over that thread's connection, which it opens when needed."""

    def __init__(self, url: str, *, client_name: str = "sluice", reply_timeout_s: float = REPLY_TIMEOUT_S) -> None:
        """Connect with the first command. Redis lists the connections as `client_name` (CLIENT LIST)."""
        # A pool only to read the URL: it counts every connection that it ever made, and stops at a hundred.
        pool = redis.ConnectionPool.from_url(url)
        # After the URL's own parameters, so that none of them can bring retries or timeouts back.
        parameters = pool.connection_kwargs | {
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            "socket_timeout": reply_timeout_s,
            "socket_connect_timeout": CONNECT_TIMEOUT_S,
            "health_check_interval": 0,
            "decode_responses": False,
            "client_name": client_name,
            "driver_info": None,
        }
        self._make_connection: Callable[[], Any] = functools.partial(pool.connection_class, **parameters)
        self._reply_timeout_s = reply_timeout_s
        self._session = _Session()
        self._scripts: dict[str, bytes] = {}
        self._sample_at = 0.0
        self._clock_offset_s: float | None = None

    def script(self, source: bytes) -> str:
        """Make a Lua script known and return the name that EVALSHA calls it by."""
        digest = hashlib.sha1(source, usedforsecurity=False).hexdigest()
        self._scripts[digest] = source
        return digest

    def now_ms(self) -> int:
        """Return the time by Redis's clock: the machines that share its queues need not agree on their own.

        Raises LinkDownError while Redis was never reached.
        """
        if self._clock_offset_s is None:
            self.run([])
        return int((time.monotonic() + (self._clock_offset_s or 0.0)) * 1000)

    def run(self, commands: Sequence[Command], *, wait_s: float = 0.0) -> list[Any]:
        """Send the commands in one write and return their answers; wait_s is the longest that one of them may block.

        Raises LinkDownError, also where Redis answers with an error: what came after is not waited for.
        """
        try:
            return self._exchange(commands, wait_s)
        except (RedisError, OSError) as error:
            self.close()
            raise LinkDownError(f"{type(error).__name__}: {error}") from error  # type: ignore[no-untyped-call]
        except BaseException:
            # Interrupted between write and read: the next command must not read these answers as its own.
            self.close()
            raise

    def close(self) -> None:
        """Close the calling thread's connection, if it has one."""
        connection, self._session.connection = self._session.connection, None
        if connection is not None:
            connection.disconnect()

    def _exchange(self, commands: Sequence[Command], wait_s: float) -> list[Any]:
        connection = self._connection()
        packed = [_pack(command) for command in commands]
        sampling = time.monotonic() >= self._sample_at
        if sampling:
            packed.insert(0, _TIME)
        self._allow(connection, math.ceil(wait_s) + self._reply_timeout_s)
        connection.send_packed_command([b"".join(packed)], check_health=False)
        if sampling:
            self._sample_clock(connection.read_response())
        answers = [self._read(connection) for _ in commands]
        for index, answer in enumerate(answers):
            if answer is _NO_SCRIPT:
                answers[index] = self._load_and_repeat(connection, commands[index])
        self._session.used_at = time.monotonic()
        return answers

    def _allow(self, connection: Any, timeout_s: float) -> None:
        """Have the socket wait so long. A timeout for each read would be two system calls for each."""
        if timeout_s != self._session.timeout_s:
            connection.update_current_socket_timeout(timeout_s)
            self._session.timeout_s = timeout_s

    def _read(self, connection: Any) -> Any:
        try:
            return connection.read_response()
        except NoScriptError:
            return _NO_SCRIPT

    def _load_and_repeat(self, connection: Any, command: Command) -> Any:
        """Repeat a script that Redis did not know, being restarted or told to forget: nothing of it has happened."""
        load: Command = ("SCRIPT", "LOAD", self._scripts[str(command[1])])
        connection.send_packed_command([_pack(load) + _pack(command)], check_health=False)
        connection.read_response()
        return connection.read_response()

    def _connection(self) -> Any:
        session = self._session
        connection = session.connection
        if connection is not None and session.process_id == os.getpid() and self._is_open(connection):
            return connection
        self.close()
        connection = self._make_connection()
        connection.connect()
        session.connection, session.process_id, session.used_at = connection, os.getpid(), time.monotonic()
        session.timeout_s = 0.0
        return connection

    def _is_open(self, connection: Any) -> bool:
        if time.monotonic() - self._session.used_at < IDLE_CHECK_S:
            return True
        try:
            return not connection.can_read(timeout=0)
        except (RedisError, OSError):
            return False

    def _sample_clock(self, answer: Sequence[bytes]) -> None:
        seconds, microseconds = answer
        now = time.monotonic()
        self._clock_offset_s = int(seconds) + int(microseconds) / 1_000_000 - now
        self._sample_at = now + CLOCK_SAMPLE_S
