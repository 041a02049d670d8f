"""Runs the command line as an operator does, with an environment of the test's own."""

import json
import logging
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import structlog

from cli.__main__ import main
from tests.peers.databases.owner import as_owner


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    """Given an environment in `env`, runs `sluice` with the words of a call, as the owner of the tests' database."""

    def __init__(self, env: dict[str, str], capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.env = env
        # Set by a test that wants more rights than the owner of the tables has.
        self.is_superuser = False
        self._capsys = capsys
        self._patch = patch

    def __call__(self, *words: str) -> Outcome:
        with self._patch.context() as patch:
            for name, value in self.env.items():
                patch.setenv(name, as_owner(value) if name == "DATABASE_URL" and not self.is_superuser else value)
            self._capsys.readouterr()
            with pytest.raises(SystemExit) as ended:
                main(list(words))
        captured = self._capsys.readouterr()
        code = ended.value.code
        return Outcome(code if isinstance(code, int) else 0, captured.out, captured.err)


@pytest.fixture
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    hooks = sys.excepthook, threading.excepthook
    yield
    root.handlers[:], root.level, logging.raiseExceptions = handlers, level, raising
    sys.excepthook, threading.excepthook = hooks
    structlog.reset_defaults()


@pytest.fixture
def sluice(_restored_logging: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command without any store."""
    env = {
        "ENVIRONMENT": "development",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }
    return CommandLine(env, capsys, monkeypatch)


@pytest.fixture
def sluice_db(sluice: CommandLine, database_url: str) -> CommandLine:
    """The command with a migrated database."""
    sluice.env["DATABASE_URL"] = database_url
    return sluice
