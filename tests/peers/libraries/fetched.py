"""Fetches other projects' libraries once, as anvil is fetched: one archive of npm's, of which one file is used.

A bundle brings all that it needs with it, so no other package comes along and nothing is installed. Called by library.
"""

from __future__ import annotations

import fcntl
import hashlib
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devstack.servers.npm import NoNpmError, find_npm, pack


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A file of a package, pinned by its hash."""

    name: str
    package: str
    version: str
    member: str
    sha256: str


TRONWEB: Final = Bundle(
    name="tronweb",
    package="tronweb",
    version="6.5.1",
    member="package/dist/TronWeb.js",
    sha256="f35b43d3e67bda1442f073a30d90a62871b5390ecd11808cd55ed201b9fb1e6f",
)
KIT: Final = Bundle(
    name="kit",
    package="@solana/kit",
    version="8.4.0",
    member="package/dist/index.production.min.js",
    sha256="cd2eecf006ec6e0c3a0f8e3d7b94da288e19bcee5d2ae9dbc8897435d239a676",
)
AXE: Final = Bundle(
    name="axe",
    package="axe-core",
    version="4.14.1",
    member="package/axe.min.js",
    sha256="29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
)
JSQR: Final = Bundle(
    name="jsqr",
    package="jsqr",
    version="1.4.0",
    member="package/dist/jsQR.js",
    sha256="bc40c8a15196236b2314db0856f72ca0b49980cd5413b8c852a7349f5fee0859",
)
BIP21: Final = Bundle(
    name="bip21",
    package="bip21",
    version="3.0.0",
    member="package/index.cjs",
    sha256="7688f83ec11e6274dc5237c8f3fe7e47c064d73e2dfc3dcde713083027f7d57f",
)
ETH_URL: Final = Bundle(
    name="eth-url-parser",
    package="eth-url-parser",
    version="1.0.4",
    member="package/dist/index.js",
    sha256="e76315e6ecc690785622dabdaa816e78385851c6018de6178d50d1b0865f09a8",
)
SOLANA_PAY: Final = Bundle(
    name="solana-pay",
    package="@solana/pay",
    version="1.0.16",
    member="package/dist/index.cjs",
    sha256="01c564c8ab5926c8e7da834a96f5db2f72008900c1848b849f87f4690880f212",
)


def fetched(env: Mapping[str, str], cache: Path, bundle: Bundle) -> Path:
    """Return a bundle out of the cache folder, fetching it at the first time. Raises NoNpmError."""
    # The form of a .js file would be decided by a package.json, which is not here.
    kept = cache / f"{bundle.name}-{bundle.version}" / f"{bundle.name}.cjs"
    kept.parent.mkdir(parents=True, exist_ok=True)
    # Test workers that come here together fetch it once.
    with (cache / f".{bundle.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _fetch(env, cache, bundle, kept)
    return kept


def _fetch(env: Mapping[str, str], cache: Path, bundle: Bundle, kept: Path) -> None:
    named = f"{bundle.package}@{bundle.version}"
    archive = pack(find_npm(env, cache), env, named, kept.parent)
    with tarfile.open(archive) as tar:
        source = tar.extractfile(bundle.member)
        code = b"" if source is None else source.read()
    archive.unlink()
    if (digest := hashlib.sha256(code).hexdigest()) != bundle.sha256:
        raise NoNpmError(f"{named} holds another file than it should ({digest})")
    draft = kept.with_suffix(".draft")
    draft.write_bytes(code)
    draft.rename(kept)
