"""Brings the development chains of the TON family. Imported by devstack.chains at first use."""

from __future__ import annotations

from typing import Final

from devstack.chains import Development, DevelopmentChain, Site
from devstack.ton.chain import TonChain
from devstack.ton.clock import TonClock
from devstack.ton.library import find_library
from devstack.ton.node import TonNode


def _chain(site: Site) -> DevelopmentChain:
    node = TonNode(site.program, site.folder, network=site.network, port=site.port, leash=site.leash)
    return TonChain(node, pairs=site.pairs, buyer_key=site.buyer_key)


DEVELOPMENT: Final = Development(name="ton emulator", find=find_library, chain=_chain, clock=TonClock)
