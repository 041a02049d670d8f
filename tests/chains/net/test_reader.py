"""The common behaviour of all readers: which nodes they ask again, which they note, and which head they use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from chains.base import Block, BlockScan, ContradictionError, MissingLogsError, NotYetError, ProviderError
from chains.bitcoin.reader import BitcoinReader
from chains.evm import wire
from chains.evm.nodes import evm_providers
from chains.evm.reader import EvmReader
from chains.net import providers as net_providers
from chains.net.budget import BudgetSpentError, budget
from chains.net.json_rpc import RpcError
from chains.net.reader import NodesReader
from chains.net.rest import RestError
from chains.net.usage import Kind
from chains.tron.reader import TronReader
from tests.chains.conftest import CATALOGUE
from tests.peers.json_rpc_node import JsonRpcNode, Raw, Refusal
from tests.peers.ours import Finds

NOBODY = Finds(lambda _seen: ())
BLOCK = Block(height=8, hash="0x8", parent_height=7, parent_hash="0x7", time=datetime(2026, 1, 1, tzinfo=UTC))
SCAN = BlockScan(block=BLOCK, transfers=())
PARENT = dict.fromkeys(("parentHash", "sha3Uncles", "stateRoot", "transactionsRoot", "receiptsRoot"), "0x" + "00" * 32)
PARENT |= dict.fromkeys(("difficulty", "gasLimit", "gasUsed", "timestamp"), "0x1")
PARENT |= dict.fromkeys(("miner", "logsBloom", "extraData", "mixHash", "nonce"), "0x")


class Asked:
    """Providers that note how they are asked, and answer what they are given."""

    count = 2
    answered_by = "first"

    def __init__(self, *answers: object) -> None:
        self.answers, self.how = list(answers), list[dict[str, object]]()

    def attempt(self, _question: object, **how: object) -> object:
        self.how.append(how)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def made(network: str, providers: Asked) -> NodesReader[Any]:
    kind = {"ethereum": EvmReader, "tron": TronReader, "bitcoin": BitcoinReader}[network]
    build = cast("Callable[..., NodesReader[Any]]", kind)
    reader = build(CATALOGUE.networks[network], CATALOGUE.pairs_on(network), providers)
    if isinstance(reader, EvmReader):
        cast("Any", reader)._ranges.scan = lambda *_args, **_kwargs: [SCAN]
    return reader


@pytest.mark.parametrize(
    ("network", "answers"),
    [
        ("ethereum", [ProviderError()]),
        ("ethereum", [MissingLogsError(), ProviderError()]),
        ("tron", [ProviderError()]),
        ("bitcoin", [ProviderError()]),
    ],
)
def test_a_block_is_read_again_from_another_node(network: str, answers: list[Exception]) -> None:
    asked = Asked(*answers)
    with pytest.raises(ProviderError):
        cast("Any", made(network, asked)).reread(8, NOBODY, but_by="first")
    assert len(asked.how) == len(answers)
    assert all(how["second"] and how["but_by"] == "first" and how["kind"] is Kind.BLOCKS for how in asked.how)


@pytest.mark.parametrize(
    ("network", "head", "answer"),
    [("ethereum", 8, SCAN), ("ethereum", 100, [SCAN]), ("tron", 8, SCAN), ("bitcoin", 8, [SCAN])],
)
def test_a_scan_notes_its_provider(network: str, head: int, answer: object) -> None:
    (scan,) = cast("Any", made(network, Asked(answer))).scan(7, head, NOBODY)
    assert scan.read_by == "first"


def header(height: int) -> dict[str, str]:
    """Return a header that proves itself, and nothing more."""
    unproved = PARENT | {"number": hex(height), "hash": ""}
    return unproved | {"hash": wire.proved_hash(msgspec.convert(unproved, wire.Header)) or ""}


class Node(JsonRpcNode):
    """A node that has blocks up to one height, whatever it says of its head."""

    def __init__(self, head: int) -> None:
        super().__init__({"eth_chainId": "0x1"}, key=f"node-{head}")
        self.says(head, has=head)

    def says(self, head: int, *, has: int) -> None:
        self.answers |= {
            "eth_blockNumber": hex(head),
            "eth_getBlockByNumber": lambda height, _full: header(int(height, 16)) if int(height, 16) <= has else None,
        }


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Node, Node, EvmReader]]:
    monkeypatch.setattr(net_providers, "HEADS_EVERY_S", 0.0)
    with Node(100) as first, Node(100) as second:
        providers = evm_providers(CATALOGUE.networks["ethereum"], [first.url, second.url], timeout_s=1.0)
        yield first, second, EvmReader(CATALOGUE.networks["ethereum"], (), providers)


@pytest.mark.parametrize("ahead", [1, 2, 1_000, 10**9])
def test_a_head_whose_block_nobody_shows_is_what_the_others_tell(
    both: tuple[Node, Node, EvmReader], ahead: int
) -> None:
    first, _, reader = both
    first.says(100 + ahead, has=100)
    assert reader.head() == 100


@pytest.mark.parametrize("ahead", [1, 10**9])
def test_a_node_that_refuses_the_block_of_its_own_head_has_shown_nothing_and_rests(
    both: tuple[Node, Node, EvmReader], ahead: int
) -> None:
    first, _, reader = both
    first.says(100 + ahead, has=100)
    first.answers["eth_getBlockByNumber"] = Refusal(-32000, "header not found")
    assert reader.head() == 100
    assert [node.rests_until > time.monotonic() for node in reader._providers._nodes] == [True, False]


class Refuses:
    """A node of any family that has a head, and refuses its block."""

    def call(self, *_asked: object) -> None:
        raise RpcError("block", -32000, "header not found")

    call_or_none = call

    def ask(self, *_asked: object) -> None:
        raise RestError("block", "header not found")


class Ahead(Asked):
    """Providers of which one is ahead of the others."""

    def head(self) -> int:
        return 101

    def common_head(self, *, ask: bool = False) -> int:
        del ask
        return 100

    def ask_one(self, _mark: str, question: Callable[[Any], object]) -> object:
        return question(Refuses())


@pytest.mark.parametrize("network", ["ethereum", "tron", "bitcoin"])
def test_a_head_whose_block_is_refused_counts_once_another_node_shows_it(network: str) -> None:
    assert made(network, Ahead(NotYetError())).head() == 100
    assert made(network, Ahead(BLOCK)).head() == 101


def test_a_node_that_fails_at_its_own_head_is_asked_last_then(both: tuple[Node, Node, EvmReader]) -> None:
    """The chain may really end there: the rest is read once a node answers that it has no such block."""
    first, _, reader = both
    first.says(101, has=100)
    first.answers["eth_getBlockByNumber"] = Raw(status=502)
    with pytest.raises(ProviderError):
        reader.head()
    assert reader.head() == 100, "the other one is asked first now"


def test_a_node_that_is_down_makes_no_head_believed_that_its_teller_does_not_show(
    both: tuple[Node, Node, EvmReader],
) -> None:
    first, second, _ = both
    with Node(100) as third:
        network = CATALOGUE.networks["ethereum"]
        three = EvmReader(network, (), evm_providers(network, [first.url, second.url, third.url], timeout_s=1.0))
        assert three.head() == 100
        third.answers |= {"eth_getBlockByNumber": Raw(status=502), "eth_blockNumber": Raw(status=502)}
        first.says(101, has=100)
        assert [three.head() for _ in range(3)] == [100] * 3


def test_a_head_whose_block_another_node_shows_is_believed(both: tuple[Node, Node, EvmReader]) -> None:
    first, second, reader = both
    first.says(101, has=100)
    second.says(100, has=101)
    assert reader.head() == 101


def test_a_node_ahead_of_a_stuck_one_is_believed(both: tuple[Node, Node, EvmReader]) -> None:
    first, second, reader = both
    first.says(180, has=180)
    assert reader.head() == 180
    second.says(181, has=181)
    first.says(90, has=90)
    assert reader.head() == 181


def test_a_head_is_one_node_s_word_where_no_other_answers(both: tuple[Node, Node, EvmReader]) -> None:
    first, second, reader = both
    second.answers["eth_blockNumber"] = Raw(status=502)
    first.says(10**9, has=100)
    assert reader.head() == 10**9


def test_a_step_without_budget_asks_for_no_block_of_a_head(both: tuple[Node, Node, EvmReader]) -> None:
    first, _, reader = both
    reader.head()
    first.says(180, has=100)
    with budget(seconds=9, requests=3), pytest.raises(BudgetSpentError):
        reader.head()


def headers_with(**changes: str) -> Callable[[str, bool], dict[str, str]]:
    """Return what shows headers that do not have their hash."""
    return lambda height, _full: header(int(height, 16)) | changes


def test_a_header_without_its_hash_is_not_believed_where_another_proves_it(both: tuple[Node, Node, EvmReader]) -> None:
    first, second, reader = both
    first.answers["eth_getBlockByNumber"] = headers_with(timestamp="0x9")
    block = reader.block(50)
    assert (block and block.time.timestamp()) == 1
    second.answers["eth_getBlockByNumber"] = Raw(status=502)
    with pytest.raises(ProviderError):
        reader.block(50)


def test_who_spoils_a_header_that_another_proves_makes_no_shape_known(both: tuple[Node, Node, EvmReader]) -> None:
    """Otherwise a provider that answers alone could report any time from then on."""
    first, second, reader = both
    first.answers["eth_getBlockByNumber"] = headers_with(miner="0x01")
    assert reader.block(50)
    first.answers["eth_getBlockByNumber"] = headers_with(timestamp="0x9")
    second.answers["eth_getBlockByNumber"] = Raw(status=502)
    with pytest.raises(ProviderError):
        reader.block(50)


def test_headers_without_their_hash_are_believed_if_two_nodes_agree(both: tuple[Node, Node, EvmReader]) -> None:
    first, second, reader = both
    first.answers["eth_getBlockByNumber"] = headers_with(timestamp="0x9")
    second.answers["eth_getBlockByNumber"] = headers_with(timestamp="0x8")
    with pytest.raises(ProviderError, match="different headers"):
        reader.block(50)
    second.answers["eth_getBlockByNumber"] = headers_with(timestamp="0x9")
    block = reader.block(50)
    assert (block and block.time.timestamp()) == 9


# The parent of a block ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("upon", "hashes", "refused"),
    [
        ("", {}, None),
        ("0x7", {}, None),
        ("0xours", {7: "0x7"}, None),
        ("0xours", {7: "0xours", 8: "0x8"}, ContradictionError),
        ("0xours", {8: "0x8"}, ContradictionError),
        ("0xours", {7: "0xours", 8: "0xanother"}, NotYetError),
    ],
    ids=["nothing expected", "ours", "a chain of its own", "two minds", "no parent", "replaced meanwhile"],
)
@pytest.mark.parametrize("network", ["ethereum", "tron", "bitcoin"])
def test_a_blocks_parent_comes_from_its_own_node(
    monkeypatch: pytest.MonkeyPatch, network: str, upon: str, hashes: dict[int, str], refused: type[Exception] | None
) -> None:
    reader = made(network, Asked())

    def hash_of(_node: object, height: int) -> str:
        if height not in hashes:
            raise NotYetError
        return hashes[height]

    monkeypatch.setattr(reader, "_hash", hash_of)
    if refused is None:
        reader._upright(object(), BLOCK, upon)
        return
    with pytest.raises(refused):
        reader._upright(object(), BLOCK, upon)


@pytest.mark.parametrize(("upon", "is_read_again"), [("", False), ("0x7", False), ("0xours", True)])
def test_a_range_upon_another_block_is_read_block_by_block(upon: str, *, is_read_again: bool) -> None:
    asked = Asked(SCAN)
    assert len(cast("Any", made("ethereum", asked)).scan(7, 100, NOBODY, upon=upon)) == 1
    assert bool(asked.how) == is_read_again
