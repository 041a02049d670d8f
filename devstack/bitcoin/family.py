"""Brings the development chains of bitcoin. Imported by devstack.chains at first use."""

from __future__ import annotations

from typing import Final

from devstack.bitcoin.chain import BitcoinChain
from devstack.bitcoin.clock import BitcoinClock
from devstack.bitcoin.node import BitcoinNode
from devstack.bitcoin.program import find_node
from devstack.chains import Development, DevelopmentChain, Site


def _chain(site: Site) -> DevelopmentChain:
    node = BitcoinNode(site.program, site.folder, network=site.network.code, port=site.port, leash=site.leash)
    return BitcoinChain(node, buyer_key=site.buyer_key)


DEVELOPMENT: Final = Development(name="bitcoin node", find=find_node, chain=_chain, clock=BitcoinClock)
