"""Unpacks a real bitcoind of Debian's unstable suite, outside the machine's own system. Called by tests/conftest.py.

apt gets a state of its own: the machine's lists, packages and locks are not touched, and root is not needed. The suite
is newer than most machines, so the program runs with the suite's C library.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

PACKAGE: Final = "bitcoin-knots"
SUITE: Final = "sid"
APT: Final = Path("/etc/apt")
LIMIT_S: Final = 240
LOADERS: Final = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")
START: Final = """\
#!/bin/sh
root="$(dirname "$0")/root"
libraries="$root/usr/lib/{triple}:$root/lib/{triple}"
exec "$root/usr/lib/{triple}/{loader}" --library-path "$libraries" "$root/usr/bin/bitcoind" "$@"
"""


class NoBitcoindError(Exception):
    """There is no bitcoind here and none could be fetched; the message says what was tried."""


class Source(NamedTuple):
    """Where the machine itself gets Debian's packages from, and by whose keys it knows them."""

    uri: str
    keyring: str


def debians_bitcoind(cache: Path) -> Path:
    """Return the program from the cache folder, fetching it at the first time. Raises NoBitcoindError."""
    cache.mkdir(parents=True, exist_ok=True)
    # Test workers that come here together fetch it once.
    with (cache / ".bitcoind.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = sorted(cache.glob("bitcoind-*/bitcoind"))
        return kept[-1] if kept else _fetch(cache)


def source() -> Source:
    """Return the first of the machine's own sources of Debian's main archive. Raises NoBitcoindError."""
    files = [APT / "sources.list", *sorted((APT / "sources.list.d").glob("*"))]
    for file in files:
        if file.is_file():
            for listed in sources(file.read_text(encoding="utf-8", errors="replace")):
                return listed
    raise NoBitcoindError("this machine knows no mirror of Debian")


def sources(text: str) -> Iterator[Source]:
    """Return those of a file of sources, in either of their two forms."""
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"(?m)^([A-Za-z-]+):[ \t]*(\S.*)$", stanza))
        if "deb" in fields.get("Types", "").split() and "main" in fields.get("Components", "").split():
            yield from _of_debian(fields.get("URIs", "").split()[:1], fields.get("Signed-By", ""))
    for options, uri, parts in re.findall(r"(?m)^deb[ \t]+(?:\[([^\]]*)\][ \t]+)?(\S+)[ \t]+\S+[ \t]+(.*)$", text):
        if "main" in parts.split():
            keyring = re.search(r"signed-by=(\S+)", options)
            yield from _of_debian([uri], keyring[1] if keyring else "")


def _of_debian(uris: Sequence[str], keyring: str) -> Iterator[Source]:
    yield from (Source(uri, keyring) for uri in uris if uri.rstrip("/").endswith("/debian"))


def _fetch(cache: Path) -> Path:
    draft = cache / ".bitcoind"
    # The remains of an interrupted run.
    shutil.rmtree(draft, ignore_errors=True)
    (draft / "root").mkdir(parents=True)
    apt = _private_apt(draft, source())
    _run([*apt, "update"])
    _run([*apt, "--download-only", "--no-install-recommends", "install", PACKAGE])
    packages = sorted((draft / "cache" / "archives").glob("*.deb"))
    for package in packages:
        _run(["dpkg-deb", "--extract", str(package), str(draft / "root")])
    loader = next((file for name in LOADERS for file in (draft / "root").glob(f"usr/lib/*/{name}")), None)
    version = next((path.name.split("_")[1] for path in packages if path.name.startswith(f"{PACKAGE}_")), None)
    if loader is None or version is None or not (draft / "root/usr/bin/bitcoind").is_file():
        raise NoBitcoindError(f"{PACKAGE} of {SUITE} holds no program that could be started")
    program = draft / "bitcoind"
    program.write_text(START.format(triple=loader.parent.name, loader=loader.name), encoding="ascii")
    program.chmod(0o755)
    for rest in ("cache", "state"):
        shutil.rmtree(draft / rest)
    return draft.rename(cache / f"bitcoind-{version}") / "bitcoind"


def _private_apt(folder: Path, mirror: Source) -> list[str]:
    """Return the command that knows this suite and no package that is installed."""
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    signed = f" [signed-by={mirror.keyring}]" if mirror.keyring else ""
    (folder / "state" / "sources").write_text(f"deb{signed} {mirror.uri} {SUITE} main\n", encoding="utf-8")
    (folder / "state" / "status").touch()
    options = {
        "Dir::State": folder / "state", "Dir::State::status": folder / "state" / "status",
        "Dir::Cache": folder / "cache", "Dir::Etc::sourcelist": folder / "state" / "sources",
        "Dir::Etc::sourceparts": "-", "Debug::NoLocking": 1, "Acquire::Languages": "none",
        # Its own account for downloads could not write here.
        "APT::Sandbox::User": "root",
    }  # fmt: skip
    return ["apt-get", "-q", "-y", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]


def _run(argv: Sequence[str]) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoBitcoindError(f"{argv[0]}: {type(error).__name__}") from None
    if done.returncode != 0:
        raise NoBitcoindError(f"{argv[0]} {argv[-1]}: {done.stderr.strip()[-500:]}")
