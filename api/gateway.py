"""Holds what every endpoint may use, built once by create_app and shared by all threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from actors.queue.broker import Backlog
from actors.queue.caller import CallInfo, CallReply
from actors.queue.shares import Shares
from api.availability import Availability
from api.limits.limits import Limiter
from core.catalogue.catalogue import Catalogue
from core.net.encoding import Packed
from core.settings.settings import Settings

if TYPE_CHECKING:
    from api.health.attention import Attention
    from api.health.health import Readiness
    from api.health.metrics import Metrics
    from api.http.auth import Authenticator
    from api.http.clock import GatewayClock
    from api.http.slots import Slots


class Caller(Protocol):
    """Calls an actor and waits for its answer; actors.queue.caller.Caller does it through the queue."""

    def call(self, actor: str, *, queue: str, info: CallInfo, payload: bytes, wait_s: float | None = None) -> CallReply:
        """Return the actor's answer, or raise the DomainError that it refused with, or GatewayBusy."""


class Queues(Protocol):
    """What is asked about the queues themselves; actors.queue.broker.SluiceBroker answers it."""

    def ping(self) -> None:
        """Raise where Redis cannot be reached."""

    def backlog(self, queue_name: str) -> Backlog:
        """Return how much waits in a queue."""

    @property
    def signs(self) -> Signs:
        """Return who serves the queues, and when the scheduler last rang."""


class Signs(Protocol):
    """What is asked about other processes; actors.queue.signs.Signs answers it."""

    def consumers(self, queue_name: str) -> int:
        """Return how many processes serve a queue."""

    def tick_age_s(self) -> float | None:
        """Return how long ago a scheduler last rang, None if that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """The process's shared objects."""

    settings: Settings
    catalogue: Catalogue
    # The networks that this gateway has providers for.
    available: frozenset[str]
    # Which methods work at this moment.
    availability: Availability
    # Where the gateway itself is reached; no webhook may lead there.
    own_hosts: frozenset[str]
    caller: Caller
    authenticator: Authenticator
    # Tells the gateway's time in public answers.
    clock: GatewayClock
    limiter: Limiter
    # What reads PostgreSQL takes one of these.
    reads: Slots
    # What takes a processor for long: large bodies and large answers, one of a merchant at a time.
    large: Shares
    # Lists that PostgreSQL goes through, two of a merchant at a time.
    searches: Shares
    readiness: Readiness
    attention: Attention
    metrics: Metrics
    # Returns the description of this API as JSON, made and compressed at the first call.
    openapi: Callable[[], Packed]
