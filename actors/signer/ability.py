"""Records whether this signer process can sign. Called by the tick that fills the address pool."""

from __future__ import annotations

import time
from typing import Final
from uuid import uuid4

from actors.context import Context, context
from actors.signer.held_keys import keys
from chains.keystore import KeystoreError
from models.spends import signer_states
from models.treasury import addresses

_process: Final = str(uuid4())


class _Noted:
    """The last recorded problem of this process, and when it is recorded again at the latest."""

    problem: str | None = None
    due_at = 0.0


def note() -> None:
    """Record whether this process can sign, if that changed or was recorded some time ago."""
    if time.monotonic() < _Noted.due_at and not _Noted.problem:
        return
    problem = obstacle(context())
    if problem != _Noted.problem or time.monotonic() >= _Noted.due_at:
        signer_states.note(_process, problem)
        _Noted.problem, _Noted.due_at = problem, time.monotonic() + signer_states.EVERY_S


def obstacle(ctx: Context) -> str:
    """Return the reason why this process cannot sign, '' if it can: its keystore does not open, or is another one."""
    try:
        opened = keys()
    except KeystoreError as error:
        return str(error)
    if ctx.settings.address_public_key not in {"", opened.pool_public_key}:
        return "ADDRESS_PUBLIC_KEY does not belong to this keystore"
    hot = addresses.hot_addresses()
    others = [
        code for code in ctx.available & hot.keys() if opened.hot_address(ctx.catalogue.networks[code]) != hot[code]
    ]
    return f"the hot wallet of {', '.join(sorted(others))} is not of this keystore" if others else ""
