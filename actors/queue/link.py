"""Speaks to Redis: a raw connection for each exchange under way, several commands in one write.

Used by actors.queue.broker and its consumer.
redis-py's clients retry, and give up reading after five seconds: a retried pipeline enqueues twice, a short timeout
breaks every blocking wait. So connections are driven by hand here: nothing is repeated, and each wait names its end.
"""

from __future__ import annotations

import functools
import hashlib
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import redis
from dramatiq.errors import ConnectionClosed
from hiredis import pack_command
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError
from redis.retry import Retry

from core.logs import outages
from core.logs.outages import StoreAwayError
from models.db.sessions.unused import Unused

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
# The store's name in the log.
REDIS: Final = "Redis"


class LinkDownError(ConnectionClosed, StoreAwayError):
    """Redis did not answer, or refused. Whether it carried the commands out is unknown."""


class _Session:
    """A connection, with the time that its socket waits."""

    __slots__ = ("connection", "timeout_s")

    # redis-py's connections are not typed.
    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.timeout_s = 0.0

    def is_open(self, used_at: float) -> bool:
        if time.monotonic() - used_at < IDLE_CHECK_S:
            return True
        try:
            return not self.connection.can_read(timeout=0)
        except (RedisError, OSError):
            return False

    def allow(self, timeout_s: float) -> None:
        """Set how long the socket waits. A timeout for each read would cost two system calls each."""
        if timeout_s != self.timeout_s:
            self.connection.update_current_socket_timeout(timeout_s)
            self.timeout_s = timeout_s

    def close(self) -> None:
        self.connection.disconnect()


class RedisLink:
    """Sends commands over a connection that no other thread uses meanwhile. Safe to share between threads."""

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
        self._unused = Unused[_Session](is_open=_Session.is_open, close=_Session.close)
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

        Raises LinkDownError, also if Redis answers with an error: later answers are not waited for.
        """
        try:
            session = self._take()
        except (RedisError, OSError) as error:
            raise _down(error) from error
        try:
            answers = self._exchange(session, commands, wait_s)
        except (RedisError, OSError) as error:
            session.close()
            # The cause has probably ended the other connections too.
            self.close()
            raise _down(error) from error
        except BaseException:
            # Interrupted between write and read: the next command must not read these answers as its own.
            session.close()
            raise
        self._unused.give_back(session)
        outages.note_back(REDIS)
        return answers

    def close(self) -> None:
        """Close the connections that no thread is using now."""
        self._unused.close_all()

    def _take(self) -> _Session:
        """Return the connection used last, or a new one."""
        session = self._unused.take()
        if session is not None:
            return session
        connection = self._make_connection()
        connection.connect()
        return _Session(connection)

    def _exchange(self, session: _Session, commands: Sequence[Command], wait_s: float) -> list[Any]:
        connection = session.connection
        packed = [_pack(command) for command in commands]
        sampling = time.monotonic() >= self._sample_at
        if sampling:
            packed.insert(0, _TIME)
        session.allow(math.ceil(wait_s) + self._reply_timeout_s)
        connection.send_packed_command([b"".join(packed)], check_health=False)
        if sampling:
            self._sample_clock(connection.read_response())
        answers = [self._read(connection) for _ in commands]
        for index, answer in enumerate(answers):
            if answer is _NO_SCRIPT:
                answers[index] = self._load_and_repeat(connection, commands[index])
        return answers

    def _read(self, connection: Any) -> Any:
        try:
            return connection.read_response()
        except NoScriptError:
            return _NO_SCRIPT

    def _load_and_repeat(self, connection: Any, command: Command) -> Any:
        """Load and repeat a script that Redis did not know, after a restart or SCRIPT FLUSH: none of it has run."""
        load: Command = ("SCRIPT", "LOAD", self._scripts[str(command[1])])
        connection.send_packed_command([_pack(load) + _pack(command)], check_health=False)
        connection.read_response()
        return connection.read_response()

    def _sample_clock(self, answer: Sequence[bytes]) -> None:
        seconds, microseconds = answer
        now = time.monotonic()
        self._clock_offset_s = int(seconds) + int(microseconds) / 1_000_000 - now
        self._sample_at = now + CLOCK_SAMPLE_S


def _down(error: Exception) -> LinkDownError:
    outages.note_away(REDIS, f"{type(error).__name__}: {error}")
    return LinkDownError(f"{type(error).__name__}: {error}")  # type: ignore[no-untyped-call]
