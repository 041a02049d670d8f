"""Fetches tronweb once, as anvil is fetched: one archive of npm's, of which one file is used. Called by peer.

The bundle brings all that it needs with it, so no other package comes along and nothing is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from devstack.servers.npm import NoNpmError, find_npm, pack

VERSION: Final = "6.5.1"
MEMBER: Final = "package/dist/TronWeb.js"
SHA256: Final = "f35b43d3e67bda1442f073a30d90a62871b5390ecd11808cd55ed201b9fb1e6f"


def bundle(env: Mapping[str, str], cache: Path) -> Path:
    """Return tronweb out of the cache folder, fetching it at the first time. Raises NoNpmError."""
    # The form of a .js file would be decided by a package.json, which is not here.
    kept = cache / f"tronweb-{VERSION}" / "tronweb.cjs"
    kept.parent.mkdir(parents=True, exist_ok=True)
    # Test workers that come here together fetch it once.
    with (cache / ".tronweb.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _fetch(env, cache, kept)
    return kept


def _fetch(env: Mapping[str, str], cache: Path, kept: Path) -> None:
    archive = pack(find_npm(env, cache), env, f"tronweb@{VERSION}", kept.parent)
    with tarfile.open(archive) as tar:
        source = tar.extractfile(MEMBER)
        code = b"" if source is None else source.read()
    archive.unlink()
    if (digest := hashlib.sha256(code).hexdigest()) != SHA256:
        raise NoNpmError(f"tronweb@{VERSION} holds another file than it should ({digest})")
    draft = kept.with_suffix(".draft")
    draft.write_bytes(code)
    draft.rename(kept)
