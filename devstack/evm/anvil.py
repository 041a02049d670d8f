"""Runs an EVM chain on this machine: anvil with state that survives SIGKILL. Made by family and the tests.

anvil writes its whole state into one file every second, and truncates the file first: a kill at that moment would leave
nothing. So it writes through a link, which tick() moves between two files: one of them is always whole.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from chains.base import ProviderError
from chains.net.json_rpc import JsonRpc
from devstack.supervise.leash import Leash
from devstack.supervise.ports import LOOPBACK
from devstack.supervise.process import Child
from devstack.supervise.program import Program

# The safe block is one such epoch behind the head, the finalized one two.
SLOTS_IN_AN_EPOCH: Final = 2
# After some hours a chain has tens of megabytes of state; it is then written less often.
BYTES_PER_INTERVAL_SECOND: Final = 16 * 1024 * 1024
ANSWER_LIMIT_S: Final = 2.0


class Anvil(Program):
    """One chain. start() returns once it answers. Without block_time_s it makes a block for each transaction."""

    def __init__(
        self,
        program: Path,
        folder: Path,
        *,
        network: str,
        chain_id: int,
        port: int,
        leash: Leash,
        block_time_s: int | None = 1,
    ) -> None:
        super().__init__(f"chain:{network}")
        self.network = network
        self.url = f"http://{LOOPBACK}:{port}"
        self._argv = [str(program), "--host", LOOPBACK, "--port", str(port), "--chain-id", str(chain_id)]
        # No accounts: the keys of anvil's own accounts are public.
        self._argv += ["--accounts", "0", "--slots-in-an-epoch", str(SLOTS_IN_AN_EPOCH), "--silent"]
        self._argv += [] if block_time_s is None else ["--block-time", str(block_time_s)]
        self._folder = folder
        self._states = (folder / "state-a.json", folder / "state-b.json")
        self._link = folder / "state.json"
        self._seen_ns = 0
        self._leash = leash

    def is_ready(self) -> bool:
        """Return True if the node answers."""
        try:
            JsonRpc(self.url, timeout_s=ANSWER_LIMIT_S).call("eth_chainId", [], str)
        except ProviderError:
            return False
        return True

    def tick(self) -> None:
        """Point the link at the other file once this one is written. Called several times a second."""
        target = self._states[0] if self._link.readlink() == Path(self._states[0].name) else self._states[1]
        try:
            written_ns = target.stat().st_mtime_ns
        except FileNotFoundError:
            return
        if written_ns != self._seen_ns:
            other = self._states[1] if target == self._states[0] else self._states[0]
            self._point_at(other)

    def _spawn(self) -> Child:
        self._folder.mkdir(parents=True, exist_ok=True)
        newest = self._newest_whole_state()
        interval_s = 1
        argv = list(self._argv)
        if newest is not None:
            argv += ["--load-state", str(newest)]
            interval_s += newest.stat().st_size // BYTES_PER_INTERVAL_SECOND
        self._point_at(self._states[0] if newest != self._states[0] else self._states[1])
        argv += ["--dump-state", str(self._link), "--state-interval", str(interval_s)]
        # anvil keeps caches under HOME.
        env = {**self._leash.env, "HOME": str(self._folder)}
        return Child(self.name, argv, env=env, log=self._folder / "anvil.log")

    def _point_at(self, state: Path) -> None:
        self._seen_ns = state.stat().st_mtime_ns if state.exists() else 0
        draft = self._link.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        draft.symlink_to(state.name)
        draft.replace(self._link)

    def _newest_whole_state(self) -> Path | None:
        existing = [path for path in self._states if path.exists()]
        by_age = sorted(existing, key=lambda path: path.stat().st_mtime_ns, reverse=True)
        return next((path for path in by_age if _is_whole(path)), None)


def _is_whole(state: Path) -> bool:
    try:
        json.loads(state.read_bytes())
    except ValueError:
        return False
    return True
