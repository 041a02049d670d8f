"""Brings the development chains of the EVM family. Imported by devstack.chains at first use."""

from __future__ import annotations

from typing import Final

from devstack.chains import Development, DevelopmentChain, Site
from devstack.evm.anvil import Anvil
from devstack.evm.anvil_binary import find_anvil
from devstack.evm.chain import EvmChain
from devstack.evm.clock import EvmClock


def _chain(site: Site) -> DevelopmentChain:
    node = Anvil(
        site.program, site.folder, network=site.network.code, chain_id=int(site.network.chain_identity),
        port=site.port, leash=site.leash,
    )  # fmt: skip
    return EvmChain(node, pairs=site.pairs, buyer_key=site.buyer_key)


DEVELOPMENT: Final = Development(name="anvil", find=find_anvil, chain=_chain, clock=EvmClock)
