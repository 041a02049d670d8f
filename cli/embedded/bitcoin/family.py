"""Brings the development chains of bitcoin. Imported by cli.embedded.chains at first use."""

from __future__ import annotations

from typing import Final

from cli.embedded.bitcoin.chain import BitcoinChain
from cli.embedded.bitcoin.clock import BitcoinClock
from cli.embedded.bitcoin.node import BitcoinNode
from cli.embedded.bitcoin.program import find_node
from cli.embedded.chains import Development, DevelopmentChain, Site


def _chain(site: Site) -> DevelopmentChain:
    node = BitcoinNode(site.program, site.folder, network=site.network.code, port=site.port, leash=site.leash)
    return BitcoinChain(node, buyer_key=site.buyer_key)


DEVELOPMENT: Final = Development(name="bitcoin node", find=find_node, chain=_chain, clock=BitcoinClock)
