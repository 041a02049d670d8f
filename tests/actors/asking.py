"""Runs calls as actors get them after their stamp was checked: a caller and a body as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from actors import context
from actors.queue.caller import CallInfo, CallReply
from actors.queue.registry import REGISTRY
from core.settings.settings import load_settings


def configure(database: str, **env: str) -> None:
    """Configure the actors with providers for ethereum and bsc."""
    given = {
        "ENVIRONMENT": "development",
        "DATABASE_URL": database,
        "REDIS_URL": "redis://127.0.0.1:1",
        "ETHEREUM_RPC_URLS": "http://127.0.0.1:1",
        "BSC_RPC_URLS": "http://127.0.0.1:1",
    }
    context.configure(load_settings(given | env))


def performer(actor: Callable[..., CallReply]) -> Callable[[CallInfo, bytes], CallReply]:
    """Return the function that the queue runs: the actor behind the reading of its body."""
    bind: Any = REGISTRY[actor.__name__].bind
    perform: Callable[[CallInfo, bytes], CallReply] = bind.args[0]
    return perform


def ask(actor: Callable[..., CallReply], call: CallInfo, body: object) -> Any:
    """Run an actor and return its response."""
    return msgspec.json.decode(performer(actor)(call, msgspec.json.encode(body)).body)
