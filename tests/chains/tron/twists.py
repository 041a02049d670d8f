"""A node that changes a chain's answers as a test wants. Support for the tests in this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from devstack.tron.answers import answer
from tests.chains.net.rest_peer import RestPeer
from tests.chains.tron.world import World, world
from tests.peers.tron.lying import LyingRest

Twist = Callable[[Any], Any]
# An address without a listener.
SILENT: Final = "http://127.0.0.1:1"
PATHS: Final = (
    "wallet/getblockbynum", "wallet/gettransactioninfobyblocknum", "wallet/getnowblock", "walletsolidity/getnowblock",
    "walletsolidity/getaccount", "walletsolidity/triggerconstantcontract", "wallet/gettransactioninfobyid",
    "walletsolidity/gettransactioninfobyid",
)  # fmt: skip


@contextmanager
def twisting(chain: World, **twists: Twist) -> Iterator[str]:
    """Start a node that passes its answers through twists, named by the last part of their paths."""

    def answering(path: str) -> Callable[[dict[str, Any]], object]:
        twist = twists.get(path.rpartition("/")[2], lambda answered: answered)
        return lambda asked: twist(answer(chain.tron.chain, path, asked))

    with RestPeer({path: answering(path) for path in PATHS}) as peer:
        yield peer.url


@contextmanager
def twisted(chain: World, **twists: Twist) -> Iterator[World]:
    with twisting(chain, **twists) as url:
        yield world(chain.tron, [url])


@contextmanager
def one_of(providers: int, chain: World, path: str, lie: Twist) -> Iterator[World]:
    """Use this many providers, of which the second, or the only one, lies."""
    with ExitStack() as stack:
        peers = [stack.enter_context(LyingRest(chain.tron.chain)) for _ in range(providers)]
        peers[min(1, providers - 1)].lies[path] = lambda truth, _question: lie(truth)
        yield world(chain.tron, [peer.url.removesuffix("/") for peer in peers])
