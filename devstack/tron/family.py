"""Brings the development chains of the TRON family. Imported by devstack.chains at first use."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from devstack.chains import Development, DevelopmentChain, NoProgramError, Site
from devstack.tron.chain import TronChain
from devstack.tron.clock import TronClock
from devstack.tron.node import TronNode

ENGINE: Final = "eth"


def _find(_env: Mapping[str, str], _cache: Path) -> Path:
    """Return the path of our own simulator, which needs a library that runs contracts."""
    if find_spec(ENGINE) is None:
        raise NoProgramError("there is nothing to execute contracts with: install requirements-dev.txt")
    return Path(__file__).with_name("server.py")


def _chain(site: Site) -> DevelopmentChain:
    node = TronNode(site.program, site.folder, network=site.network, port=site.port, leash=site.leash)
    return TronChain(node, pairs=site.pairs, buyer_key=site.buyer_key)


DEVELOPMENT: Final = Development(name="tron simulator", find=_find, chain=_chain, clock=TronClock)
