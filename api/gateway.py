"""What every endpoint may use, built once by create_app and shared by all threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.broker import Backlog
    from actors.calls import CallInfo, CallReply
    from api.auth import Authenticator
    from api.health import Readiness
    from api.limits import Limiter
    from api.metrics import Metrics
    from core.catalogue import Catalogue
    from core.settings import Settings


class Caller(Protocol):
    """Calls an actor and waits for its answer; actors.calls.Caller does it through the queue."""

    def call(self, actor: str, *, queue: str, info: CallInfo, payload: bytes, wait_s: float | None = None) -> CallReply:
        """Return the actor's answer, or raise the DomainError that it refused with, or GatewayBusy."""


class Queues(Protocol):
    """What is asked about the queues themselves; actors.broker.SluiceBroker answers it."""

    def ping(self) -> None:
        """Raise where Redis cannot be reached."""

    def backlog(self, queue_name: str) -> Backlog:
        """Return how much waits in a queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """The process's shared objects."""

    settings: Settings
    catalogue: Catalogue
    # The networks that this gateway has providers for.
    available: frozenset[str]
    # Where the gateway itself is reached; no webhook may lead there.
    own_hosts: frozenset[str]
    caller: Caller
    authenticator: Authenticator
    limiter: Limiter
    readiness: Readiness
    metrics: Metrics
    # Returns the description of this API as JSON, made at the first call.
    openapi: Callable[[], bytes]
