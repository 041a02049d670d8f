"""Nodes answer in the words of toncenter: refusals with a status, numbers as texts, rubbish from a proxy."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest

from chains.base import ContradictionError, NotYetError, ProviderError, WrongChainError
from chains.net import http
from chains.net.http import RateLimitedError, RefusedError, TooMuchError, TooSlowError
from chains.ton import boc, nodes, transactions, wire
from chains.ton.nodes import LackedError, Toncenter, ToncenterError, ton_providers
from chains.ton.spends.history import Walk
from core.catalogue.catalogue import load_catalogue
from devstack.ton.simulator import Simulator
from tests.chains.ton.lying import LyingTon
from tests.chains.ton.running import shared_engine
from tests.chains.ton.world import TON
from tests.peers.json_rpc_node import Raw, Refusal

NETWORK = load_catalogue("production").networks["ton"]
OURS = "0:" + "ab" * 32
HASH = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
def chain() -> Simulator:
    """Return a chain with one payment, in its first block."""
    simulator = Simulator(shared_engine(), NETWORK.chain_identity)
    simulator.give(OURS, TON)
    simulator.mine(2)
    return simulator


@pytest.fixture
def peer(chain: Simulator) -> Iterator[LyingTon]:
    with LyingTon(chain) as node:
        yield node


@pytest.fixture
def node(peer: LyingTon) -> Toncenter:
    return Toncenter(peer.url, timeout_s=5)


def test_the_chain_its_head_and_its_blocks_are_asked_for(peer: LyingTon, chain: Simulator) -> None:
    providers = ton_providers(NETWORK, [peer.url], timeout_s=5)

    assert (providers.identities(), providers.head()) == ([NETWORK.chain_identity], 2)
    header = providers.attempt(lambda node: nodes.header(node, 2))
    assert (header.height, header.parent_height, header.is_proved) == (2, 1, False)
    assert (header.hash, header.parent_hash) == (chain.head.id.hash.hex(), chain.masters[1].id.hash.hex())
    assert int(header.time.timestamp()) == chain.head.time


def test_another_chain_at_the_provider(peer: LyingTon) -> None:
    peer.lies["getMasterchainInfo"] = lambda truth, _asked: truth | {"init": truth["init"] | {"root_hash": HASH}}
    providers = ton_providers(NETWORK, [peer.url], timeout_s=5)

    assert providers.identities() == [HASH]
    with pytest.raises(WrongChainError):
        providers.head()


def test_blocks_of_shards_and_their_transactions(node: Toncenter) -> None:
    [top] = nodes.shards(node, 1)
    page = nodes.page(node, top)

    [entry] = page.transactions
    read = transactions.read(boc.read_base64(entry.data))
    assert (read.address, read.incoming.units, page.incomplete) == (OURS, TON, False)
    assert wire.hashed(entry.transaction_id.hash) == read.hash.hex()
    assert nodes.page(node, top, after=(OURS[2:], read.lt)).transactions == []
    assert nodes.page(node, top, after=(OURS[2:], read.lt - 1)).transactions == [entry]
    header = nodes.shard_header(node, top)
    assert (header.prev_blocks, wire.number(header.end_lt)) == (list(nodes.shards(node, 0)), read.lt + 1)
    assert (top.prefix, top.shard) == (1 << 63, wire.WHOLE)


def test_an_account_after_the_newest_and_an_older_block(node: Toncenter, chain: Simulator) -> None:
    now, before, never = (nodes.account(node, OURS, seqno=seqno) for seqno in (None, 0, 1))

    assert (now.units, before.units, never.units) == (TON, 0, TON)
    assert (now.state, now.code, now.block_id.seqno, before.block_id.seqno) == ("uninitialized", "", 2, 0)
    [entry] = nodes.history(node, OURS)
    assert nodes.history(node, OURS, first=entry.transaction_id) == [entry]
    assert nodes.history(node, OURS, to_lt=wire.number(entry.transaction_id.lt)) == []
    assert chain.ran[OURS][0].cell.hash == boc.read_base64(entry.data).hash
    assert boc.read_base64(nodes.config(node)).refs


def test_an_account_that_does_not_exist_has_no_coin(peer: LyingTon, node: Toncenter) -> None:
    for shown, units in (("-1", 0), (7, 7), ("7", 7)):
        peer.lies["getAddressInformation"] = lambda truth, _asked, shown=shown: truth | {"balance": shown}
        assert nodes.account(node, OURS).units == units
    for shown in ("-2", "", "1e3", "9" * 30, str(2**128 + 1)):
        peer.lies["getAddressInformation"] = lambda truth, _asked, shown=shown: truth | {"balance": shown}
        with pytest.raises(ContradictionError):
            _ = nodes.account(node, OURS).units


def test_a_refusal_in_words_comes_with_any_status(peer: LyingTon) -> None:
    node = Toncenter(f"{peer.url}#X-API-Key=secret-of-the-owner", timeout_s=5)
    for code in (404, 422, 500, 503, 542):
        peer.failure = Refusal(
            code, "LITE_SERVER_UNKNOWN: cannot apply\nexternal message secret-of-the-owner " + "x" * 600
        )
        with pytest.raises(ToncenterError) as caught:
            nodes.config(node)
        assert isinstance(caught.value, RefusedError)
        assert (caught.value.code, 500 <= len(caught.value.text) < 510) == (code, True)
        assert "secret-of" not in str(caught.value)
        assert peer.headers["X-API-Key"] == "secret-of-the-owner"
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "LITE_SERVER_NOTREADY: block is not applied",
        "LITE_SERVER_NOTREADY: seqno not in db",
        "LITE_SERVER_UNKNOWN: ltdb: block not found",
        "LITE_SERVER_UNKNOWN: cannot compute block with specified transaction: lt not in db",
        "LITE_SERVER_UNKNOWN: cannot locate transaction in block with specified logical time",
        "LITE_SERVER_NOTREADY: cannot find block (-1,8000000000000000) seqno=2399",
        "LITE_SERVER_UNKNOWN: cannot load block (-1,8000000000000000,2399)",
        "LITE_SERVER_UNKNOWN: cannot find block handle",
        "LITE_SERVER_NOTREADY: state is already pruned",
    ],
)
def test_a_block_that_a_node_lacks_is_not_there_yet_or_pruned(peer: LyingTon, node: Toncenter, text: str) -> None:
    peer.lies |= {"getBlockHeader": Refusal(500, text), "shards": Refusal(500, text)}

    with pytest.raises(NotYetError):
        nodes.header(node, 2)
    with pytest.raises(NotYetError):
        nodes.header(node, 3)
    with pytest.raises(LackedError):
        nodes.header(node, 1)
    with pytest.raises(LackedError):
        nodes.shards(node, 1)


def test_a_node_of_the_chain_is_not_ready_by_its_number(peer: LyingTon, node: Toncenter) -> None:
    peer.lies["getBlockHeader"] = Raw(b'{"ok": false, "error": "later", "code": 651}', status=500)
    with pytest.raises(NotYetError):
        nodes.header(node, 3)


@pytest.mark.parametrize(
    "text", ["LITE_SERVER_NETWORK: timeout", "Lite Server Timeout", "LITE_SERVER_NOTREADY: node not synced"]
)
def test_a_node_without_a_connection_to_the_chain_has_failed(peer: LyingTon, node: Toncenter, text: str) -> None:
    peer.failure = Refusal(500, text)
    with pytest.raises(ProviderError) as caught:
        nodes.config(node)
    assert not isinstance(caught.value, RefusedError)


@pytest.mark.parametrize(
    "answer",
    [
        Raw(b"<html>Bad gateway</html>", status=502),
        Raw(b"<html>Please log in</html>", content_type="text/html"),
        Raw(b'{"ok": true, "id": 1}'),
        Raw(b'{"ok": true, "id": 77, "result": {}}'),
        Raw(b'{"ok": true, "id": 1, "result": {"last": 7}}'),
        Raw(b'{"jsonrpc": "2.0", "id": 1, "error": {"code": 7, "message": "no"}}'),
        Raw(b"[" * 100_000),
        Raw(drop=True),
    ],
)
def test_rubbish_is_a_failure_and_no_answer(peer: LyingTon, node: Toncenter, answer: Raw) -> None:
    peer.failure = answer
    with pytest.raises(ProviderError):
        nodes.head(node)


def test_an_id_may_come_back_as_a_text(peer: LyingTon, node: Toncenter) -> None:
    peer.failure = Raw(b'{"ok": true, "id": "1", "result": {"config": {"bytes": "te6"}}}')
    assert nodes.config(node) == "te6"


def test_a_node_that_asks_for_patience_gets_it(peer: LyingTon, node: Toncenter) -> None:
    peer.failure = Raw(b'{"ok":false,"result":"Ratelimit exceed","code":429}', status=429, retry_after="7")
    with pytest.raises(RateLimitedError) as caught:
        nodes.head(node)
    assert caught.value.retry_after_s == 7


def _other(name: str, value: object) -> Any:
    return lambda truth, _asked: truth | {"id": truth["id"] | {name: value}}


@pytest.mark.parametrize(
    ("method", "lie"),
    [
        ("getBlockHeader", _other("seqno", 1)),
        ("getBlockHeader", _other("workchain", 0)),
        ("getBlockHeader", _other("shard", "0")),
        ("getBlockHeader", _other("root_hash", "AAAA")),
        ("getBlockHeader", _other("root_hash", "?")),
        ("getBlockHeader", lambda truth, _asked: truth | {"gen_utime": -1}),
        ("getBlockHeader", lambda truth, _asked: truth | {"gen_utime": 2**47}),
        ("getBlockHeader", lambda truth, _asked: truth | {"prev_blocks": []}),
        ("getBlockHeader", lambda truth, _asked: truth | {"prev_blocks": [truth["id"]]}),
    ],
)
def test_a_header_of_another_block_is_not_believed(peer: LyingTon, node: Toncenter, method: str, lie: object) -> None:
    peer.lies[method] = lie
    with pytest.raises(ProviderError):
        nodes.header(node, 2)


@pytest.mark.parametrize("name", ["seqno", "root_hash", "shard", "file_hash", "workchain"])
def test_an_answer_about_another_block_of_a_shard_is_not_believed(peer: LyingTon, node: Toncenter, name: str) -> None:
    [top] = nodes.shards(node, 1)
    lie = _other(name, 9 if name in {"seqno", "workchain"} else HASH)
    peer.lies |= {"getBlockHeader": lie, "getBlockTransactionsExt": lie}
    with pytest.raises(ContradictionError, match="another header"):
        nodes.shard_header(node, top)
    with pytest.raises(ContradictionError, match="another block"):
        nodes.page(node, top)


def test_an_account_after_another_block_is_not_believed(peer: LyingTon, node: Toncenter) -> None:
    for name, value in (("seqno", 1), ("workchain", 0)):
        peer.lies["getAddressInformation"] = lambda truth, _asked, name=name, value=value: (
            truth | {"block_id": truth["block_id"] | {name: value}}
        )
        with pytest.raises(ContradictionError):
            nodes.account(node, OURS, seqno=2)


def test_a_head_is_a_block_of_the_masterchain(peer: LyingTon, node: Toncenter) -> None:
    peer.lies["getMasterchainInfo"] = lambda truth, _asked: truth | {"last": truth["last"] | {"workchain": 0}}
    with pytest.raises(ContradictionError):
        nodes.head(node)


@pytest.mark.parametrize("text", ["", "-", "1.5", "٣", "1" * 21, " 1"])
def test_numbers_are_digits(text: str) -> None:
    with pytest.raises(ContradictionError):
        wire.number(text)
    assert (wire.number("-9"), wire.number("0")) == (-9, 0)


def test_addresses_come_in_any_form() -> None:
    assert wire.address("EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs") == (
        "0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe"
    )
    with pytest.raises(ContradictionError):
        wire.address("EQ")
    assert wire.base64_of(wire.hashed(HASH)) == HASH


# Answers that are too long --------------------------------------------------------------------------------------------

FILLER = 20_000


@dataclass
class Padded:
    """A node that shows long texts in its transactions, as anyone may send, and the numbers that it is asked for."""

    node: Toncenter
    counts: list[int]

    def block(self, top: wire.BlockId) -> list[int]:
        """Return the lengths of a block's pages."""
        lengths, after = list[int](), None
        while True:
            page = nodes.page(self.node, top, after=after)
            lengths.append(len(page.transactions))
            if not page.incomplete:
                return lengths
            after = OURS[2:], wire.number(page.transactions[-1].transaction_id.lt)


@pytest.fixture
def padded(peer: LyingTon, node: Toncenter, chain: Simulator, monkeypatch: pytest.MonkeyPatch) -> Padded:
    """Return a node whose answers have room for two transactions."""
    for _ in range(6):
        chain.give(OURS, TON)
    chain.mine()
    one = Padded(node, [])

    def fill(truth: Any, asked: dict[str, Any]) -> Any:
        one.counts.append(asked.get("limit") or asked["count"])
        for each in truth if isinstance(truth, list) else truth["transactions"]:
            each["in_msg"]["message"] = "x" * FILLER
        return truth

    peer.lies |= {"getTransactions": fill, "getBlockTransactionsExt": fill}
    monkeypatch.setattr(http, "REPLY_BYTES_MAX", 3 * FILLER)
    return one


def test_a_page_of_a_block_that_is_too_long_is_asked_for_in_parts(padded: Padded, chain: Simulator) -> None:
    [top] = nodes.shards(padded.node, chain.head.id.seqno)
    assert padded.block(top) == [2, 2, 2]
    # After a page that was short enough, more are tried again.
    assert padded.counts == [256, 128, 64, 32, 16, 8, 4, 2, 4, 2, 4]
    # The next step goes on with a number that nearly fitted.
    padded.counts.clear()
    assert padded.block(top) == [2, 2, 2]
    assert padded.counts[0] == 8


def test_a_page_of_an_account_that_is_too_long_is_asked_for_in_parts(padded: Padded) -> None:
    walk, pages = Walk(OURS), list[int]()
    while not walk.is_over:
        pages += map(len, walk.pages(padded.node))
    assert (sum(pages), max(pages)) == (7, 2)
    assert padded.counts[:7] == [100, 50, 25, 12, 6, 3, 1]


def test_one_transaction_may_have_a_longer_answer(padded: Padded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REPLY_BYTES_MAX", FILLER // 2)
    assert len(nodes.history(padded.node, OURS)) == 1
    monkeypatch.setattr(nodes, "SINGLE_BYTES_MAX", FILLER)
    with pytest.raises(TooMuchError, match=f"one transaction of {OURS}"):
        nodes.history(padded.node, OURS)
    [top] = nodes.shards(padded.node, 3)
    with pytest.raises(TooMuchError, match=f"one transaction of block {top.seqno} of shard"):
        nodes.page(padded.node, top)


def test_a_short_question_does_not_shorten_the_next_one(padded: Padded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REPLY_BYTES_MAX", 100 * FILLER)
    assert [len(nodes.history(padded.node, OURS, limit=limit)) for limit in (1, 0)] == [1, 7]
    assert padded.counts == [1, 100]


def test_a_page_that_takes_too_long_is_shorter_the_next_time(node: Toncenter, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = list[int]()

    def late(_what: str, body: bytes, *, bytes_max: int) -> bytes:
        counts.append(json.loads(body)["params"]["limit"])
        raise TooSlowError(f"getTransactions: {bytes_max}")

    monkeypatch.setattr(node._http, "post", late)
    for _ in range(9):
        with pytest.raises(TooSlowError):
            nodes.history(node, OURS)
    assert counts == [100, 50, 25, 12, 6, 3, 1, 1, 1]


def test_the_longest_transaction_has_room() -> None:
    # 255 messages of 2^21 bits, in base64.
    assert nodes.SINGLE_BYTES_MAX > 255 * (1 << 21) / 8 * 4 / 3
    # All cells of an account, with four references of four bytes, and a message of the greatest size.
    assert boc.BYTES_MAX > 65_536 * (2 + 128 + 16) + (1 << 21) / 8
    assert boc.CELLS_MAX > 65_536 + 2 * 8_192


def test_of_few_places_it_is_kept_how_much_fits(node: Toncenter, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(_count: int, _bytes_max: int) -> NoReturn:
        raise TooSlowError("late")

    monkeypatch.setattr(nodes, "FITTING_MAX", 3)
    for place in "abcdef":
        with pytest.raises(TooSlowError):
            node.page(place, 8, late)
    assert dict(node._fitting) == dict.fromkeys("def", 4)
