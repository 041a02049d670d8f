"""Finds the anvil program, or fetches it once with npm. Called by family, and by the tests' fixture."""

from __future__ import annotations

import fcntl
import hashlib
import platform
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devstack.chains import NoProgramError
from devstack.servers.npm import NoNpmError, find_npm, pack

VERSION: Final = "1.7.1"
MEMBER: Final = "package/bin/anvil"
ADVICE: Final = "put anvil on PATH or its path into ANVIL, or start once where npm or pip can download: it is kept"


@dataclass(frozen=True)
class Package:
    """The npm package with the program for one platform; sha256 is the program's, if we know it."""

    name: str
    sha256: str | None


PACKAGES: Final[Mapping[str, Package]] = {
    "x86_64": Package(
        "@foundry-rs/anvil-linux-amd64", "10c1c727d6c1de973aeb160e59875b9a9a23464d6e74149ee8abb30b3500311b"
    ),
    "aarch64": Package("@foundry-rs/anvil-linux-arm64", None),
}


class NoAnvilError(NoProgramError):
    """anvil is missing and could not be fetched; the message names the attempts and the remedy."""


def find_anvil(env: Mapping[str, str], cache: Path) -> Path:
    """Return the program from ANVIL, PATH, the cache, or npm (installed or fetched). Raises NoAnvilError."""
    if named := env.get("ANVIL"):
        if not Path(named).is_file():
            raise NoAnvilError(f"ANVIL names {named}, where there is no file")
        return Path(named)
    if path := shutil.which("anvil", path=env.get("PATH")):
        return Path(path)
    return cached_anvil(env, cache)


def cached_anvil(env: Mapping[str, str], cache: Path) -> Path:
    """Return the program from the cache folder, after fetching it at first use. Raises NoAnvilError."""
    program = cache / f"anvil-{VERSION}" / "anvil"
    if program.exists():
        return program
    cache.mkdir(parents=True, exist_ok=True)
    # Two test workers that come here at once fetch it once.
    with (cache / ".anvil.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _fetch(env, cache, program)
    return program


def _fetch(env: Mapping[str, str], cache: Path, program: Path) -> None:
    package = PACKAGES.get(platform.machine())
    if package is None:
        raise NoAnvilError(
            f"there is no anvil to fetch for {platform.machine()}: put it on PATH or its path into ANVIL"
        )
    program.parent.mkdir(parents=True, exist_ok=True)
    try:
        archive = pack(find_npm(env, cache), env, f"{package.name}@{VERSION}", program.parent)
    except NoNpmError as error:
        raise NoAnvilError(f"{error}\n{ADVICE}") from error
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


def _check_digest(path: Path, package: Package) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if package.sha256 not in (None, digest):
        path.unlink()
        raise NoAnvilError(f"{package.name}@{VERSION} holds another program than it should ({digest})")
