"""Brings the development chains of the Solana family. Imported by devstack.chains at first use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from devstack.chains import Development, DevelopmentChain, Site
from devstack.solana.chain import SolanaChain
from devstack.solana.clock import SolanaClock
from devstack.solana.node import SolanaNode


def _find(_env: Mapping[str, str], _cache: Path) -> Path:
    """Return the path of our own simulator; its engine is part of the library that the gateway itself needs."""
    return Path(__file__).with_name("server.py")


def _chain(site: Site) -> DevelopmentChain:
    node = SolanaNode(site.program, site.folder, network=site.network, port=site.port, leash=site.leash)
    return SolanaChain(node, pairs=site.pairs, buyer_key=site.buyer_key)


DEVELOPMENT: Final = Development(name="solana simulator", find=_find, chain=_chain, clock=SolanaClock)
