"""Finds the node's program: bitcoind, or else our own node, which needs only a wheel. Called by family."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from devstack.chains import NoProgramError

OWN: Final = Path(__file__).with_name("facade") / "start.py"
ENGINE: Final = "pbk"
ADVICE: Final = "put bitcoind on PATH or its path into BITCOIND, or install what requirements-dev.txt pins"


class NoBitcoinNodeError(NoProgramError):
    """Neither bitcoind nor our own node's wheel is installed; the message names the remedy."""


def find_node(env: Mapping[str, str], _cache: Path) -> Path:
    """Return the program from BITCOIND or PATH, else our own. Raises NoBitcoinNodeError."""
    if named := env.get("BITCOIND"):
        if not Path(named).is_file():
            raise NoBitcoinNodeError(f"BITCOIND names {named}, where there is no file")
        return Path(named)
    if path := shutil.which("bitcoind", path=env.get("PATH")):
        return Path(path)
    if importlib.util.find_spec(ENGINE) is None:
        raise NoBitcoinNodeError(f"there is no bitcoind, and no engine for a node of our own: {ADVICE}")
    return OWN
