"""The rigs, and which duties are asked of each: of all of them every one, unless it says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from chains.net import providers as net_providers
from devstack.bitcoin.program import OWN
from devstack.evm.anvil import Anvil
from devstack.supervise.leash import Leash
from models.deposits import cursors
from tests.chains.contract.bitcoin import BitcoinRig, RealBitcoinRig
from tests.chains.contract.evm import EvmRig
from tests.chains.contract.rig import Rig
from tests.chains.contract.solana import SolanaRig
from tests.chains.contract.ton import TonRig
from tests.chains.contract.toy import CoinsRig, CounterRig, SeqnoRig, WindowRig
from tests.chains.contract.tron import TronRig
from tests.chains.toy.nodes import NODES
from tests.chains.toy.plug import forget, plug
from tests.peers.bitcoind.kept import KeptChain, kept_chain

RIGS: Final[tuple[type[Rig], ...]] = (
    EvmRig,
    TronRig,
    SolanaRig,
    TonRig,
    RealBitcoinRig,
    BitcoinRig,
    CounterRig,
    SeqnoRig,
    CoinsRig,
    WindowRig,
)
# Chains of the house on which a claim has no other form than on a real one: theirs is the long run.
AGAIN: Final[frozenset[type[Rig]]] = frozenset({CounterRig, SeqnoRig, WindowRig})
Start = Callable[..., Rig]
OURS: Final[Mapping[str, str]] = {
    "test_a_payment_is_credited_once_however_often_its_block_is_read": "it tells blocks that prove what they hold",
    "test_a_reorg_in_the_middle_of_a_scan_is_followed": "it goes over to another branch",
    "test_a_block_reward_is_credited_when_it_is_mature": "it takes blocks that somebody else has made",
    "test_a_payout_that_a_reorg_takes_out_is_sent_again_and_paid_once": "what it takes back waits again",
    "test_a_stuck_payout_is_offered_more_and_paid_once": "its pool lets the dearer take a place",
    "test_a_payout_without_change_is_offered_more_with_other_coins_and_paid_once": "so also with more coins",
    "test_a_payout_voided_by_a_thief_is_signed_again_after_the_write_off": "a block empties its pool",
    "test_the_books_agree_with_the_chains_balances": "it tells which coins are unspent",
    "test_two_of_three_pools_make_a_sighting_soon_and_one_loss_does_not_end_it": "it tells what waiting ones offer",
    "test_signing_waits_for_lost_transactions_in_the_pools": "it tells what spends a coin",
    "test_a_sighting_that_returns_begins_again": "it begins again without its pool",
}
"""What is asked of our own node of bitcoin, and what of it only that shows: the rest is asked of a real one."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask each duty of those whom it is for."""
    if "kind" in metafunc.fixturenames:
        asked = [kind for kind in RIGS if _is_asked(kind, metafunc)]
        is_named = metafunc.definition.get_closest_marker("rigs") is not None
        marks = [() if is_named or kind not in AGAIN else pytest.mark.soak for kind in asked]
        params = [pytest.param(kind, marks=mark, id=kind.label()) for kind, mark in zip(asked, marks, strict=True)]
        metafunc.parametrize("kind", params, indirect=True)


def _is_asked(kind: type[Rig], metafunc: pytest.Metafunc) -> bool:
    claims, names = (
        {name for marker in metafunc.definition.iter_markers(mark) for name in marker.args}
        for mark in ("claims", "rigs")
    )
    if kind is BitcoinRig and metafunc.function.__name__ not in OURS:
        return False
    return (not claims or kind.claim in claims) and (not names or kind.label() in names)


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> type[Rig]:
    """Whose turn it is; who lacks what the duty needs is let off before anything is started."""
    asked: type[Rig] = request.param
    needs = request.node.get_closest_marker("needs")
    missing = [name for name in (needs.args if needs else ()) if name in asked.lacks]
    if missing:
        pytest.skip(f"{missing[0]}: {asked.lacks[missing[0]]}")
    return asked


@pytest.fixture(scope="session")
def own_chain(server_folder: Path, leash: Leash) -> Iterator[KeptChain]:
    """The chain of our own node, begun again for each duty."""
    yield from kept_chain(OWN, server_folder / "own_bitcoin", leash)


@pytest.fixture
def start(
    request: pytest.FixtureRequest, kind: type[Rig], database: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Start]:
    """Start a gateway on a chain of the family, by default with one provider."""
    monkeypatch.setattr(net_providers, "HEADS_EVERY_S", 0.0)
    # Each look counts at once.
    monkeypatch.setattr(cursors, "HEAD_EVERY_S", 0)
    with ExitStack() as stack:
        plug(monkeypatch)

        def begin(providers: int = 1, **env: str) -> Rig:
            if kind is EvmRig:
                anvil: Callable[..., Anvil] = request.getfixturevalue("anvil")
                made: Rig = EvmRig(database, anvil, stack)
            elif issubclass(kind, BitcoinRig):
                chain = "real_chain" if kind is RealBitcoinRig else "own_chain"
                made = kind(database, request.getfixturevalue(chain), stack)
            elif kind is TronRig:
                made = TronRig(database, stack)
            elif kind is SolanaRig:
                made = SolanaRig(database, stack)
            elif kind is TonRig:
                made = TonRig(database, stack)
            else:
                made = kind(database)
            return stack.enter_context(made.served_by(providers, **env))

        yield begin
    NODES.clear()
    # Objects that are built later do not contain the toys.
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
