"""Shares one stack among the stories that leave it intact, each with its own merchants; one test process runs them all.

A story's changes of the chain and of the clock stay for the next one. A story that changes more has its own stack.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from core.secrets.secretbox import SecretBox
from models.db import base
from models.merchants import rows as merchants
from tests.flows.stack import Stack
from tests.peers.smtp_server import SmtpServer
from tests.sdk.fixtures import driver, open_shop

__all__ = ["driver", "open_shop"]


@pytest.fixture(scope="package")
def mailbox() -> Iterator[SmtpServer]:
    """The mail server of the stack, with what buyers were sent."""
    with SmtpServer() as server:
        yield server


@pytest.fixture(scope="package")
def one_stack(tmp_path_factory: pytest.TempPathFactory, anvil_program: object, mailbox: SmtpServer) -> Iterator[Stack]:
    del anvil_program  # without anvil there is no story
    env = {"SMTP_URL": mailbox.url}
    with Stack(tmp_path_factory.mktemp("stack"), networks="ethereum,bsc", env=env) as running:
        yield running


def with_own_merchants(stack: Stack) -> Stack:
    """Return the stack as two new merchants see it."""
    base.connect(stack.ready["env"]["DATABASE_URL"])
    try:
        mine, other = (_new_key(SecretBox(stack.ready["env"]["SECRET_KEYS"])) for _ in range(2))
    finally:
        base.close()
    own = copy.copy(stack)
    own.ready = stack.ready | mine | {"other_merchant": other}
    return own


def _new_key(box: SecretBox) -> dict[str, Any]:
    key = merchants.create_key(merchants.create_merchant("Story").id, "unified", "main", box)
    return {"public_id": key.public_id, "secret": key.secret}


@pytest.fixture
def stack(one_stack: Stack) -> Stack:
    return with_own_merchants(one_stack)
