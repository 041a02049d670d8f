"""Reads the processor time of a program and all of its children. Used by harness around each round."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

TICK_MS: Final = 1000 / os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat behind the name, which may contain anything: the parent, then the four times.
_PARENT, _TIMES = 1, slice(11, 15)


def tree_cpu_ms(root: int) -> float:
    """Return the milliseconds of a process tree, with ended children."""
    table = {pid: fields for pid, fields in map(_stat, _pids()) if fields}
    children: dict[int, list[int]] = {}
    for pid, fields in table.items():
        children.setdefault(int(fields[_PARENT]), []).append(pid)
    ticks, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        # An ended child's time is added to its parent's once the parent has waited for it.
        ticks += sum(map(int, table[pid][_TIMES])) if pid in table else 0
        waiting += children.get(pid, [])
    return ticks * TICK_MS


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def _stat(pid: int) -> tuple[int, list[str]]:
    try:
        return pid, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return pid, []
