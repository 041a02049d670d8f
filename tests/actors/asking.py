"""Calls as actors get them, once a process of ours is known to have sent them: who asks, and a body as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from actors import context
from actors.queue.caller import CallInfo, CallReply
from actors.queue.registry import REGISTRY
from core.settings.settings import load_settings


def configure(database: str, **env: str) -> None:
    """Give the actors a gateway with providers for ethereum and bsc."""
    given = {
        "ENVIRONMENT": "development",
        "DATABASE_URL": database,
        "REDIS_URL": "redis://127.0.0.1:1",
        "ETHEREUM_RPC_URLS": "http://127.0.0.1:1",
        "BSC_RPC_URLS": "http://127.0.0.1:1",
    }
    context.configure(load_settings(given | env))


def performer(actor: Callable[..., CallReply]) -> Callable[[CallInfo, bytes], CallReply]:
    """Return what the queue runs: the actor behind the reading of its body."""
    bind: Any = REGISTRY[actor.__name__].bind
    perform: Callable[[CallInfo, bytes], CallReply] = bind.args[0]
    return perform


def ask(actor: Callable[..., CallReply], call: CallInfo, body: object) -> Any:
    """Have an actor do something and return its answer."""
    return msgspec.json.decode(performer(actor)(call, msgspec.json.encode(body)).body)
