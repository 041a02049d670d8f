"""Provides other ways to claim for the gateway that spends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

import pytest

from chains import registry
from core.catalogue import families
from tests.actors.signer.world import SpendWorld
from tests.peers.paper_spender import Claim, PaperSpender


@pytest.fixture
def paper(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> Callable[..., PaperSpender]:
    """Give the network's family another claim."""

    def make(
        claim: Claim, *, outputs_max: int = 1, in_flight_max: int = 64, gather_s: int = 0, window_s: int = 0
    ) -> PaperSpender:
        traits = replace(
            families.TRAITS["evm"], claim=claim, outputs_max=outputs_max, in_flight_max=in_flight_max,
            gather_s=gather_s, gather_max_s=5 * gather_s, window_s=window_s,
        )  # fmt: skip
        monkeypatch.setattr(families, "TRAITS", MappingProxyType({**families.TRAITS, "evm": traits}))
        spender = PaperSpender(world.chain, claim)
        monkeypatch.setattr(registry, "spender", lambda _network, _settings: spender)
        return spender

    return make
