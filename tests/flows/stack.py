"""A gateway of its own for a story: `sluice dev` as a user starts it, and the handles that its ready file gives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from tests.flows.merchant import Merchant

START_LIMIT_S = 90.0


class Stack:
    def __init__(
        self,
        folder: Path,
        *,
        networks: str = "ethereum",
        program: str = "cli",
        env: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.folder, self.networks, self.program, self.env = folder, networks, program, env
        self.ready_file = folder / "ready.json"
        self.data = folder / "data"
        self.process: subprocess.Popen[bytes] | None = None
        self.ready: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self.ready_file.unlink(missing_ok=True)
        command = ["dev", "--port", "0", "--data", str(self.data), "--networks", self.networks]
        with (self.folder / "dev.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.program, *command, "--ready-file", str(self.ready_file)],
                env={**os.environ, **self.env},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        end = time.monotonic() + START_LIMIT_S
        while not self.ready_file.exists():
            assert self.process.poll() is None, (self.folder / "dev.log").read_text()
            assert time.monotonic() < end, (self.folder / "dev.log").read_text()
            time.sleep(0.05)
        self.ready = json.loads(self.ready_file.read_text())
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, (self.folder / "dev.log").read_text()[-4000:]
        # Every process runs under the grants of its role, so that each story proves that they are enough.
        refused = [line for line in self.postgres_log().splitlines() if "permission denied" in line]
        assert not refused, refused[:10]

    def postgres_log(self) -> str:
        """Return what the stack's PostgreSQL had to say."""
        return (self.data / "postgres.log").read_text(errors="replace")

    def merchant(self) -> Merchant:
        return Merchant(self.ready["base_url"], self.ready["public_id"], self.ready["secret"])

    def pids(self) -> dict[str, list[int]]:
        return json.loads((self.data / "pids.json").read_text())

    def sluice(self, *words: str) -> Any:
        """Run a further command against this stack and return what it printed as JSON."""
        done = subprocess.run(
            [sys.executable, "-m", "cli", *words, "--json"],
            env={**os.environ, **self.ready["env"]},
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)
