"""The peers that tests of bitcoin run against."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chains.net.json_rpc import JsonRpc
from core.catalogue.catalogue import load_catalogue
from devstack.bitcoin.node import BitcoinNode
from tests.peers.bitcoind.debian import Source, sources
from tests.peers.bitcoind.hand_mined import BUYER_ADDRESS, HandMined

STANZA = """\
# a comment
Types: deb deb-src
URIs: http://mirror.test/debian/
Suites: stable
Components: main contrib
Signed-By: /keys/debian.gpg

Types: deb
URIs: http://mirror.test/debian-security
Suites: stable-security
Components: main
"""
LINES = """\
deb [arch=amd64 signed-by=/keys/other.gpg] https://other.test/node nodistro main
# deb http://off.test/debian stable main
deb http://mirror.test/debian stable main
deb [signed-by=/keys/debian.gpg] http://second.test/debian stable main
"""


@pytest.mark.parametrize(
    ("text", "sources_listed"),
    [
        (STANZA, [Source("http://mirror.test/debian/", "/keys/debian.gpg")]),
        (LINES, [Source("http://mirror.test/debian", ""), Source("http://second.test/debian", "/keys/debian.gpg")]),
        ("", []),
    ],
)
def test_the_machines_own_mirror_of_debian_is_found(text: str, sources_listed: list[Source]) -> None:
    assert list(sources(text)) == sources_listed


def test_a_real_node_pays_and_reorgs(bitcoind: Callable[[], BitcoinNode]) -> None:
    node = bitcoind()
    chain = HandMined(node.url, coins=3)
    genesis = JsonRpc(node.url, timeout_s=5).call("getblockhash", [0], str)
    assert genesis == load_catalogue("development").networks["bitcoin"].chain_identity

    raw = chain.signed((BUYER_ADDRESS, 5_000))
    txid = chain.send(raw)
    tip = chain.mine()
    assert chain.ask("gettxout", txid, 0)["confirmations"] == 1

    chain.reorg(1, (raw, 0))
    assert (chain.ask("gettxout", txid, 0)["confirmations"], chain.height(), chain.waiting()) == (1, tip, [])
    chain.reorg(1)
    # The coin is spent in another way there.
    assert (chain.ask("gettxout", txid, 0), chain.height(), chain.waiting()) == (None, tip, [])
