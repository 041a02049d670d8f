"""A node that tells of the chain what a test makes of its answers. A file of support for the tests beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from cli.embedded.tron.answers import answer
from tests.chains.net.rest_peer import RestPeer
from tests.chains.tron.world import World, world

Twist = Callable[[Any], Any]
PATHS: Final = (
    "wallet/getblockbynum", "wallet/gettransactioninfobyblocknum", "wallet/getnowblock", "walletsolidity/getnowblock",
    "walletsolidity/getaccount", "walletsolidity/triggerconstantcontract", "wallet/gettransactioninfobyid",
    "walletsolidity/gettransactioninfobyid",
)  # fmt: skip


@contextmanager
def twisting(chain: World, **twists: Twist) -> Iterator[str]:
    """Let a node tell of the chain what a twist makes of its answers. Named by the last part of their paths."""

    def told(path: str) -> Callable[[dict[str, Any]], object]:
        twist = twists.get(path.rpartition("/")[2], lambda answered: answered)
        return lambda asked: twist(answer(chain.tron.chain, path, asked))

    with RestPeer({path: told(path) for path in PATHS}) as peer:
        yield peer.url


@contextmanager
def twisted(chain: World, **twists: Twist) -> Iterator[World]:
    with twisting(chain, **twists) as url:
        yield world(chain.tron, [url])
