"""Holds the objects that every endpoint may use. create_app builds it once; all threads share it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from actors.queue.broker import Backlog
from actors.queue.caller import CallInfo, CallReply
from actors.queue.merchant_limits import Shares
from api.availability import Availability
from api.limits.limits import Limiter
from core.catalogue.catalogue import Catalogue
from core.http.encoding import Packed
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
    """Reports on the queues; implemented by actors.queue.broker.SluiceBroker."""

    def ping(self) -> None:
        """Raise an exception if Redis cannot be reached."""

    def backlog(self, queue_name: str) -> Backlog:
        """Return the number and the age of a queue's messages."""

    @property
    def heartbeats(self) -> Heartbeats:
        """Return the heartbeats of the other processes."""


class Heartbeats(Protocol):
    """Reports on the other processes; implemented by actors.queue.heartbeats.Heartbeats."""

    def consumers(self, queue_name: str) -> int:
        """Return how many processes serve a queue."""

    def tick_age_s(self) -> float | None:
        """Return the seconds since a scheduler last sent a notification, None if that is not known."""

    def is_new(self) -> bool:
        """Return True while Redis began empty so short ago that processes may not have reported."""

    def connections(self) -> int:
        """Return the connections to PostgreSQL that the running processes may open together."""

    def note_connections(self) -> None:
        """Report how many connections to PostgreSQL this process may open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """The process's shared objects."""

    settings: Settings
    catalogue: Catalogue
    # The networks that this gateway has providers for.
    available: frozenset[str]
    # Which methods work at this moment.
    availability: Availability
    # The hosts of the gateway itself; no webhook may go there.
    own_hosts: frozenset[str]
    caller: Caller
    authenticator: Authenticator
    # Puts the gateway's time into public answers.
    clock: GatewayClock
    limiter: Limiter
    # Each read of PostgreSQL takes one of these slots.
    reads: Slots
    # Large bodies and large answers keep a processor busy for long: one of a merchant at a time.
    large: Shares
    # Searches of lists in PostgreSQL, two of a merchant at a time.
    searches: Shares
    readiness: Readiness
    attention: Attention
    metrics: Metrics
    # Returns the OpenAPI document as JSON, made and compressed at the first call.
    openapi: Callable[[], Packed]
