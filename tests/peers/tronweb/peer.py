"""tronweb, another project's library that builds, signs and sends: one Node.js that answers lines. Used by tests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, Self, cast

from devstack.servers.npm import find_node
from tests.peers.tronweb.fetched import bundle

SCRIPT: Final = Path(__file__).with_name("answers.mjs")


class TronwebError(Exception):
    """tronweb refused; the message is its own."""


class Tronweb:
    """Ends with the process that holds it: its input does. A context manager."""

    def __init__(self, env: Mapping[str, str], cache: Path) -> None:
        """Raise NoNpmError where it is not here and cannot be fetched."""
        code = bundle(env, cache)
        self._argv = [find_node(env, cache), str(SCRIPT), str(code)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=10)

    def ask(self, what: str, **asked: object) -> Any:
        """Return what it answers. Raises TronwebError."""
        stdin = cast("IO[str]", self._process.stdin)
        stdin.write(json.dumps({"what": what, **asked}) + "\n")
        stdin.flush()
        answer = json.loads(cast("IO[str]", self._process.stdout).readline())
        if "error" in answer:
            raise TronwebError(answer["error"])
        return answer.get("result")
