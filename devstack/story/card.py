"""Makes the card that `dev` and `demo` print once they serve: addresses, keys, commands. Called by devstack.dev."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from urllib3.exceptions import HTTPError

from devstack.plan import DATA_DEFAULT
from devstack.shop.client import ApiError, Client

if TYPE_CHECKING:
    from devstack.stack import Stack

GUIDE: Final = "docs/quickstart.md"
PROGRAM: Final = "sluice"


def facts_of(stack: Stack) -> Iterator[tuple[str, str]]:
    """Return addresses and keys, by name."""
    yield "API", stack.base_url
    yield "guide", GUIDE
    yield "reference", f"{stack.base_url}/docs"
    page = _payment_page(stack)
    if page:
        yield "payment", page
    for name, key in (("key", stack.accounts.merchant), ("second key", stack.accounts.approver)):
        yield name, key.public_id
        yield "  its secret", key.secret
    yield "logs", stack.logs


def commands_of(stack: Stack) -> Iterator[tuple[str, str]]:
    """Return the commands that use this stack, each with its effect."""
    sluice = _program()
    dev = f"{sluice} dev{_folder(stack.plan.data)}"
    yield f'eval "$({dev} env)"', "sets BASE_URL, PUBLIC_ID, SECRET and all settings"
    yield f"{dev} pay PAYMENT", "pays by number, page address or order"
    yield f"{dev} listen", "receives webhooks, verified or not"
    yield f"{dev} clock 1h", "moves the clock of the gateway and its chains"
    yield f"{dev} run -- COMMAND", "runs any command with these settings"
    if not _folder(stack.plan.data):
        yield f"{sluice} merchant list", "and every other operator's command"


def _payment_page(stack: Stack) -> str:
    """Make a payment to try, and return its page; '' for a program that reads the ready file and makes its own."""
    if stack.plan.ready_file is not None:
        return ""
    key = stack.accounts.merchant
    client = Client(stack.base_url, public_id=key.public_id, secret=key.secret)
    body: dict[str, object] = {"amount": "25.00", "currency": "USD", "order_id": f"card-{secrets.token_hex(4)}"}
    try:
        return str(client.post("/v1/payment", body)["url"])
    except (ApiError, HTTPError):
        return ""


def _program() -> str:
    """Return the command as the developer has to write it here."""
    if shutil.which(PROGRAM):
        return PROGRAM
    path, here = Path(sys.executable).parent / PROGRAM, Path.cwd()
    return shlex.quote(os.path.relpath(path, here) if path.is_relative_to(here) else str(path))


def _folder(data: Path) -> str:
    return "" if data.resolve() == DATA_DEFAULT.resolve() else f" --data {shlex.quote(str(data))}"
