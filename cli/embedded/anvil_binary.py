"""Finds the anvil program, or fetches it once with npm. Called by cli.dev, and by the tests through their fixture."""

from __future__ import annotations

import fcntl
import hashlib
import platform
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = "1.7.1"
FETCH_LIMIT_S: Final = 300
MEMBER: Final = "package/bin/anvil"


@dataclass(frozen=True)
class Package:
    """The npm package of one platform, which holds the program itself; sha256 is the program's, where we know it."""

    name: str
    sha256: str | None


PACKAGES: Final[Mapping[str, Package]] = {
    "x86_64": Package(
        "@foundry-rs/anvil-linux-amd64", "10c1c727d6c1de973aeb160e59875b9a9a23464d6e74149ee8abb30b3500311b"
    ),
    "aarch64": Package("@foundry-rs/anvil-linux-arm64", None),
}


class NoAnvilError(Exception):
    """There is no anvil here and none could be fetched; the message says what was tried."""


class NamedAnvilMissingError(NoAnvilError):
    """ANVIL names what is not there: a mistake to be told, not to be worked around."""


def find_anvil(env: Mapping[str, str], cache: Path) -> Path:
    """Return the program from ANVIL, PATH, the cache folder or npm, in this order. Raises NoAnvilError."""
    if named := env.get("ANVIL"):
        if not Path(named).is_file():
            raise NamedAnvilMissingError(f"ANVIL names {named}, where there is no file")
        return Path(named)
    if found := shutil.which("anvil", path=env.get("PATH")):
        return Path(found)
    return cached_anvil(env, cache)


def cached_anvil(env: Mapping[str, str], cache: Path) -> Path:
    """Return the program from the cache folder, fetching it at the first time. Raises NoAnvilError."""
    program = cache / f"anvil-{VERSION}" / "anvil"
    if program.exists():
        return program
    cache.mkdir(parents=True, exist_ok=True)
    # Two test workers that come here together fetch it once.
    with (cache / ".anvil.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _fetch(env, program)
    return program


def _fetch(env: Mapping[str, str], program: Path) -> None:
    package = PACKAGES.get(platform.machine())
    npm = shutil.which("npm", path=env.get("PATH"))
    if package is None or npm is None:
        lacking = f"no package for {platform.machine()}" if package is None else "no npm"
        raise NoAnvilError(f"anvil is not in ANVIL nor on PATH, and there is {lacking} to fetch it with")
    program.parent.mkdir(parents=True, exist_ok=True)
    _pack(npm, env, f"{package.name}@{VERSION}", program.parent)
    archive = next(program.parent.glob("*.tgz"))
    draft = program.with_suffix(".draft")
    with tarfile.open(archive) as tar, draft.open("wb") as file:
        source = tar.extractfile(MEMBER)
        if source is None:
            raise NoAnvilError(f"{package.name} does not hold {MEMBER}")
        shutil.copyfileobj(source, file)
    archive.unlink()
    _check_digest(draft, package)
    draft.chmod(0o755)
    draft.rename(program)


def _pack(npm: str, env: Mapping[str, str], package: str, folder: Path) -> None:
    """`npm pack` downloads and verifies without installing: no script of the package runs."""
    for leftover in folder.glob("*.tgz"):
        leftover.unlink()
    argv = [npm, "pack", package, "--pack-destination", str(folder), "--loglevel=error"]
    try:
        done = subprocess.run(
            argv, cwd=folder, env=dict(env), capture_output=True, text=True, check=False, timeout=FETCH_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise NoAnvilError(f"npm did not bring {package} within {FETCH_LIMIT_S} s") from None
    if done.returncode != 0:
        raise NoAnvilError(f"npm could not bring {package}: {done.stderr.strip()[:500]}")


def _check_digest(path: Path, package: Package) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if package.sha256 not in (None, digest):
        path.unlink()
        raise NoAnvilError(f"{package.name}@{VERSION} holds another program than it should ({digest})")
