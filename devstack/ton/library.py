"""Finds the library that runs TON's transactions, or fetches it once with pip. Called by engine's users.

It is the node's own code, compiled, in a wheel for Python 3.11. Only the library is taken out of it, and opened with
ctypes by any Python. emulator.txt pins the wheel with its hash. It is a download like anvil's own, and no requirement
of the product.
"""

from __future__ import annotations

import fcntl
import hashlib
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from devstack.chains import NoProgramError

PIN: Final = Path(__file__).parent / "pinned" / "emulator.txt"
MACHINE: Final = "x86_64"
MEMBER: Final = "pytvm/engine/libemulator-linux-x86_64.so"
SHA256: Final = "97450676781ce258d24eaa71eb346494e43bf430a0d0de9dd5116dc5a5cd7aff"
FETCH_LIMIT_S: Final = 300
ADVICE: Final = "put its path into TON_EMULATOR, or start once where pip can download: it is kept"

_ERROR_CHARS: Final = 500
_WHEEL: Final = (
    "--only-binary=:all:",
    "--python-version=3.11",
    "--implementation=cp",
    "--abi=cp311",
    "--platform=manylinux_2_27_x86_64",
)


class NoEmulatorError(NoProgramError):
    """The library is missing and could not be fetched; the message names the attempt and the remedy."""


def find_library(env: Mapping[str, str], cache: Path) -> Path:
    """Return the library from TON_EMULATOR, or from the cache, fetching it at first use. Raises NoEmulatorError."""
    if named := env.get("TON_EMULATOR"):
        if not Path(named).is_file():
            raise NoEmulatorError(f"TON_EMULATOR names {named}, where there is no file")
        return Path(named)
    return _cached(env, cache)


def _cached(env: Mapping[str, str], cache: Path) -> Path:
    library = cache / f"ton-emulator-{SHA256[:8]}.so"
    if library.exists():
        return library
    cache.mkdir(parents=True, exist_ok=True)
    # Two test workers that come here at once fetch it once.
    with (cache / ".ton-emulator.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            _fetch(env, library)
    return library


def _fetch(env: Mapping[str, str], library: Path) -> None:
    if platform.machine() != MACHINE:
        raise NoEmulatorError(f"there is no library to fetch for {platform.machine()}: {ADVICE}")
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        wheel = _download(env, Path(folder))
        with zipfile.ZipFile(wheel) as archive:
            code = archive.read(MEMBER)
    if (digest := hashlib.sha256(code).hexdigest()) != SHA256:
        raise NoEmulatorError(f"the wheel holds another library than it should ({digest})")
    draft = library.with_suffix(".draft")
    draft.write_bytes(code)
    draft.rename(library)


def _download(env: Mapping[str, str], folder: Path) -> Path:
    """Fetch the wheel with pip, which verifies its hash and runs no code of it."""
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    argv += ["--no-deps", *_WHEEL, "--require-hashes", "--requirement", str(PIN), "--dest", str(folder)]
    try:
        done = subprocess.run(argv, env=dict(env), capture_output=True, text=True, check=False, timeout=FETCH_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise NoEmulatorError(f"pip did not bring TON's emulator within {FETCH_LIMIT_S} s: {ADVICE}") from None
    if done.returncode != 0:
        raise NoEmulatorError(f"pip could not bring TON's emulator: {done.stderr.strip()[-_ERROR_CHARS:]}\n{ADVICE}")
    return next(folder.glob("*.whl"))
