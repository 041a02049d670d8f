"""The rigs, of which every duty is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from chains.net import providers as chain_providers
from cli.embedded.evm.anvil import Anvil
from tests.chains.contract.bitcoin import BitcoinRig
from tests.chains.contract.evm import EvmRig
from tests.chains.contract.rig import Rig
from tests.chains.contract.toy import CoinsRig, CounterRig, WindowRig
from tests.chains.contract.tron import TronRig
from tests.chains.toy.nodes import NODES
from tests.chains.toy.plug import forget, plug

RIGS: Final[tuple[type[Rig], ...]] = (EvmRig, TronRig, BitcoinRig, CounterRig, CoinsRig, WindowRig)
Start = Callable[..., Rig]


@pytest.fixture(params=RIGS, ids=[rig.code for rig in RIGS])
def start(request: pytest.FixtureRequest, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Begins a gateway on a chain of the family, with one provider unless told otherwise."""
    monkeypatch.setattr(chain_providers, "HEADS_EVERY_S", 0.0)
    kind: type[Rig] = request.param
    needs = request.node.get_closest_marker("needs")
    missing = [name for name in (needs.args if needs else ()) if name in kind.lacks]
    if missing:
        pytest.skip(f"{missing[0]}: {kind.lacks[missing[0]]}")
    with ExitStack() as stack:
        plug(monkeypatch)

        def begin(providers: int = 1, **env: str) -> Rig:
            if kind is EvmRig:
                anvil: Callable[..., Anvil] = request.getfixturevalue("anvil")
                made: Rig = EvmRig(database, anvil, stack)
            elif kind is BitcoinRig:
                made = BitcoinRig(database, request.getfixturevalue("regtest"), stack)
            elif kind is TronRig:
                made = TronRig(database, stack)
            else:
                made = kind(database)
            return stack.enter_context(made.served_by(providers, **env))

        yield begin
    NODES.clear()
    # What is built again is built without the toys.
    monkeypatch.undo()
    forget()


@pytest.fixture
def rig(start: Start) -> Rig:
    """A gateway with one provider."""
    return start()


@pytest.fixture
def rich(rig: Rig) -> Rig:
    """A gateway whose hot wallet has coins."""
    rig.enrich()
    rig.advance(rig.network.maturity)
    return rig
