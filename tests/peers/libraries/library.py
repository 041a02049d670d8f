"""Another project's library that builds, signs and sends: one Node.js that answers lines. Used by tests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self, cast

from devstack.servers.npm import find_node
from tests.peers.libraries.fetched import Bundle, fetched


class LibraryError(Exception):
    """The library refused; the message is its own."""


class Library:
    """Ends with the process that holds it: its input does. A context manager."""

    def __init__(self, env: Mapping[str, str], cache: Path, bundle: Bundle) -> None:
        """Raise NoNpmError where it is not here and cannot be fetched."""
        code = fetched(env, cache, bundle)
        script = Path(__file__).with_name(f"{bundle.name}.mjs")
        self._argv = [find_node(env, cache), str(script), str(code)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=10)

    def ask(self, what: str, **asked: object) -> Any:
        """Return what it answers. Raises LibraryError."""
        stdin = cast("IO[str]", self._process.stdin)
        stdin.write(json.dumps({"what": what, **asked}) + "\n")
        stdin.flush()
        answer = json.loads(cast("IO[str]", self._process.stdout).readline())
        if "error" in answer:
            raise LibraryError(answer["error"])
        return answer.get("result")
