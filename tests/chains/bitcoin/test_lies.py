"""Providers that lie or lag: another one is asked, and none is believed about what does not prove itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chains.base import ContradictionError, DisagreementError, NotYetError, Place, ProviderError
from chains.bitcoin import reader
from chains.bitcoin.transactions import double_sha256, id_text
from tests.chains.bitcoin.conftest import OURS, Books, Chain, bitcoin_reader
from tests.peers.json_rpc_node import Answer, JsonRpcNode, Refusal

ASKED = (
    "getbestblockhash", "getblock", "getblockchaininfo", "getblockcount", "getblockhash", "getblockheader",
    "getrawtransaction", "gettxout", "gettxspendingprevout",
)  # fmt: skip
STATE = {"blocks": 5, "headers": 9, "initialblockdownload": False, "pruned": False}


class Liar(JsonRpcNode):
    """Answers as an honest node does, but for what a test says."""

    def __init__(self, chain: Chain) -> None:
        answers: dict[str, Answer] = {method: self._honestly(chain, method) for method in ASKED}
        super().__init__(answers)

    def _honestly(self, chain: Chain, method: str) -> Any:
        return lambda *params: chain.node.ask(method, *params)


@pytest.fixture
def liar(chain: Chain) -> Iterator[Liar]:
    with Liar(chain) as node:
        yield node


def changed(chain: Chain, place: int, byte: int) -> Any:
    """Return what shows blocks with one byte changed."""

    def shown(wanted: str, kind: int) -> str:
        raw = bytearray.fromhex(chain.node.ask("getblock", wanted, kind))
        raw[place] ^= byte
        return raw.hex()

    return shown


def test_one_of_two_that_hides_a_coin_decides_no_balance(chain: Chain, liar: Liar) -> None:
    txid = chain.node.pay((OURS, 50_000))
    chain.node.mine()
    liar.answers["gettxout"] = None
    place = Place(address=OURS, pair=None, coins=((txid, 0),))
    for urls in ((liar.url, chain.node.url), (chain.node.url, liar.url)):
        with pytest.raises(DisagreementError):
            bitcoin_reader(*urls).snapshot([place], height=1, block_hash="")


def test_a_block_that_was_changed_is_read_of_the_next_provider(chain: Chain, liar: Liar) -> None:
    txid = chain.node.pay((OURS, 50_000))
    height = chain.node.mine()
    liar.answers["getblock"] = changed(chain, -130, 1)  # in an output; witnesses are not named by the header

    with pytest.raises(ProviderError):
        bitcoin_reader(liar.url).scan(height - 1, height, Books())
    (scans,) = bitcoin_reader(liar.url, chain.node.url).scan(height - 1, height, Books())
    assert [one.txid for one in scans.transfers] == [txid]


@pytest.mark.parametrize("is_teller_first", [True, False])
def test_a_header_that_is_replayed_shows_no_head(chain: Chain, liar: Liar, *, is_teller_first: bool) -> None:
    """A header proves its work and its parent, and names no height; the coin that its block makes does."""
    head = chain.node.height()
    ahead = head + 5
    liar.answers["getblockcount"] = ahead
    liar.answers["getblockhash"] = lambda height: chain.node.ask("getblockhash", min(height, head))
    urls = (liar.url, chain.node.url) if is_teller_first else (chain.node.url, liar.url)
    both = bitcoin_reader(*urls)

    assert [both.head() for _ in range(2)] == [head, head]


def test_a_block_upon_another_than_its_own_providers_is_read_of_the_next(chain: Chain, liar: Liar) -> None:
    head = chain.node.height()
    liar.answers["getblockhash"] = lambda at: chain.node.ask("getblockhash", head - 2 if at == head - 1 else at)

    with pytest.raises(ContradictionError):
        bitcoin_reader(liar.url).scan(head - 1, head, Books(), upon="another")
    (scans,) = bitcoin_reader(liar.url, chain.node.url).scan(head - 1, head, Books(), upon="another")
    assert scans.block.height == head


def test_a_block_of_another_height_is_refused(chain: Chain, liar: Liar) -> None:
    head = chain.node.height()
    liar.answers["getblockhash"] = lambda height: chain.node.ask("getblockhash", height and height - 1)

    with pytest.raises(ProviderError, match="made for another height"):
        bitcoin_reader(liar.url).scan(head - 1, head, Books())


def test_the_first_block_has_no_other_height(chain: Chain, liar: Liar) -> None:
    head = chain.node.height()
    liar.answers["getblockhash"] = lambda _height: chain.node.ask("getblockhash", 0)

    with pytest.raises(ProviderError, match="where it cannot"):
        bitcoin_reader(liar.url).block(head)


def test_a_chain_of_less_work_is_not_followed(chain: Chain, liar: Liar) -> None:
    # Regtest asks for none; but of a parent that asked for other work, no such block can come.
    head = chain.node.height()
    parent = bytearray.fromhex(chain.node.ask("getblockheader", chain.node.ask("getblockhash", head - 1), False))
    parent[74] ^= 1  # in its figure
    while double_sha256(bytes(parent))[31] > 0x7E:
        parent[76] = (parent[76] + 1) % 256
    made = bytearray.fromhex(chain.node.ask("getblockheader", chain.node.ask("getblockhash", head), False))
    made[4:36] = double_sha256(bytes(parent))
    while double_sha256(bytes(made))[31] > 0x7E:
        made[76] = (made[76] + 1) % 256
    headers = {id_text(double_sha256(bytes(raw))): bytes(raw).hex() for raw in (parent, made)}
    wanted = id_text(double_sha256(bytes(made)))
    liar.answers["getblockhash"] = lambda height: wanted if height else chain.node.ask("getblockhash", 0)
    liar.answers["getblockheader"] = lambda block, _is_verbose: headers[block]

    whole = bytearray.fromhex(chain.node.ask("getblock", chain.node.ask("getblockhash", head), 0))
    liar.answers["getblock"] = (made + whole[80:]).hex()

    with pytest.raises(ProviderError, match="another work than its parent"):
        bitcoin_reader(liar.url).block(head)
    with pytest.raises(ProviderError, match="another work than its parent"):
        bitcoin_reader(liar.url).scan(head - 1, head, Books())


@pytest.mark.parametrize("answer", ["", "zz", "00" * 31, 7, None, ["00" * 32]])
def test_a_malformed_hash_is_no_block(chain: Chain, liar: Liar, answer: object) -> None:
    liar.answers["getblockhash"] = lambda height: answer if height else chain.node.ask("getblockhash", 0)

    with pytest.raises(ProviderError):
        bitcoin_reader(liar.url).block(5)


def test_a_block_that_was_thrown_away_is_read_of_the_next_provider(chain: Chain, liar: Liar) -> None:
    liar.answers["getblock"] = Refusal(-1, "Block not available (pruned data)")

    with pytest.raises(ProviderError, match="pruned"):
        bitcoin_reader(liar.url).scan(4, 5, Books())
    assert bitcoin_reader(liar.url, chain.node.url).scan(4, 5, Books())[0].block.height == 5


def test_a_range_ends_where_a_node_falls_silent(chain: Chain, liar: Liar) -> None:
    tenth = chain.node.ask("getblockhash", 10)
    liar.answers["getblock"] = lambda wanted, kind: (
        Refusal(-1, "gone") if wanted == tenth else chain.node.ask("getblock", wanted, kind)
    )

    scans = bitcoin_reader(liar.url).scan(0, 100, Books())
    assert [one.block.height for one in scans] == list(range(1, 10))


def test_a_range_ends_where_blocks_part_and_where_it_is_large(
    chain: Chain, liar: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = chain.node.mine(3)
    stale = chain.node.ask("getblockhash", head - 1)
    chain.node.reorg(3)
    liar.answers["getblockhash"] = lambda height: (
        stale if height == head - 1 else chain.node.ask("getblockhash", height)
    )

    scans = bitcoin_reader(liar.url).scan(head - 20, head, Books())
    assert [one.block.height for one in scans] == list(range(head - 19, head - 1))
    monkeypatch.setattr(reader, "RANGE_BYTES_MAX", 1)
    assert len(bitcoin_reader(liar.url).scan(head - 20, head, Books())) == 1


def test_a_nodes_missing_methods_are_reported(chain: Chain, liar: Liar) -> None:
    def lacking(**state: object) -> list[str]:
        liar.answers["getblockchaininfo"] = STATE | state
        (lacks,) = bitcoin_reader(liar.url).lacking()
        assert not isinstance(lacks, ProviderError)
        return list(lacks)

    assert chain
    assert lacking() == []
    assert "5 of 9 blocks" in lacking(initialblockdownload=True)[0]
    assert "no block below 3" in lacking(pruned=True, pruneheight=3)[0]
    liar.answers["gettxspendingprevout"] = Refusal(-32601, "Method not found")
    assert [line[:36] for line in lacking()] == ["it cannot say what spends a coin in "]


def test_coins_at_two_tips_are_no_answer(chain: Chain, liar: Liar) -> None:
    txid = chain.node.pay((OURS, 50_000))
    chain.node.mine()
    place = Place(address=OURS, pair=None, coins=((txid, 0),))

    def mined(*params: object) -> object:
        chain.node.mine()
        return chain.node.ask("gettxout", *params)

    liar.answers["gettxout"] = mined
    with pytest.raises(ProviderError, match="faster"):
        bitcoin_reader(liar.url).snapshot([place], height=1, block_hash="")


def test_a_tip_that_changes_while_nothing_is_found_is_no_answer(chain: Chain, liar: Liar) -> None:
    txid = chain.node.pay((OURS, 50_000))
    chain.node.mine()
    place = Place(address=OURS, pair=None, coins=((txid, 0),))

    def spent(*_params: object) -> None:
        # In the block that comes now; the answer names none.
        chain.node.mine()

    liar.answers["gettxout"] = spent
    with pytest.raises(ProviderError, match="faster"):
        bitcoin_reader(liar.url).snapshot([place], height=1, block_hash="")


def test_a_tip_that_was_replaced_is_no_answer_yet(chain: Chain, liar: Liar) -> None:
    chain.node.mine()
    stale = chain.node.ask("getbestblockhash")
    chain.node.reorg(1)
    liar.answers["getbestblockhash"] = stale
    place = Place(address=OURS, pair=None, coins=(("ab" * 32, 0),))

    with pytest.raises(NotYetError, match="stands no longer"):
        bitcoin_reader(liar.url).snapshot([place], height=1, block_hash="")


NO_AMOUNTS = (
    -1, 21_000_001, 0.000000001, "x", None, "NaN", "sNaN", "Infinity", "1e999999", "-1e999999", "1e9999999",
    # Without the digits beyond the decimal context's precision, these would be whole numbers.
    "1e-999999999", "0.000000010000000000000000000000000000000001",
)  # fmt: skip


def test_a_coin_of_a_worth_that_there_is_not_is_no_answer(chain: Chain, liar: Liar) -> None:
    txid = chain.node.pay((OURS, 50_000))
    chain.node.mine()
    shown = chain.node.ask("gettxout", txid, 0, False)
    reader, place = bitcoin_reader(liar.url), Place(address=OURS, pair=None, coins=((txid, 0),))
    assert reader.snapshot([place], height=1, block_hash="").units == (50_000,)

    for value in NO_AMOUNTS:
        liar.answers["gettxout"] = shown | {"value": value}
        with pytest.raises(ProviderError):
            reader.snapshot([place], height=1, block_hash="")


def test_bytes_of_another_transaction_are_no_second_opinion_and_no_departure(chain: Chain, liar: Liar) -> None:
    wanted, other = chain.node.pay((OURS, 50_000)), chain.node.pay((OURS, 50_000))
    height = chain.node.mine()
    block = chain.scan(height).block
    liar.answers["getrawtransaction"] = lambda _txid, kind, at: chain.node.ask("getrawtransaction", other, kind, at)

    with pytest.raises(ProviderError, match="another transaction"):
        bitcoin_reader(liar.url).departure(wanted, block)


def test_a_departure_is_read_from_its_own_block_with_coins_made_before(chain: Chain, liar: Liar) -> None:
    wanted = chain.node.pay((OURS, 50_000))
    height = chain.node.mine()
    block = chain.scan(height).block
    reward = chain.node.ask("getblock", block.hash, 1)["tx"][0]
    liar.answers["getrawtransaction"] = lambda *params: chain.node.ask("getrawtransaction", *params) | {"fee": 0.1}
    reader = bitcoin_reader(liar.url)

    assert reader.departure(wanted, block)
    with pytest.raises(ProviderError, match="is not in block"):
        reader.departure(wanted, replace(block, hash="ab" * 32))
    with pytest.raises(ProviderError, match="is not in block"):
        reader.departure("ab" * 32, block)
    with pytest.raises(ProviderError, match="another transaction"):
        reader.departure(reward, block)


def test_other_coins_at_the_same_tip_are_a_lie(chain: Chain, liar: Liar) -> None:
    txid = chain.node.pay((OURS, 50_000))
    chain.node.mine()
    liar.answers["gettxout"] = lambda *params: chain.node.ask("gettxout", *params) | {"value": 1}
    place = Place(address=OURS, pair=None, coins=((txid, 0),))

    with pytest.raises(DisagreementError, match="of one block"):
        bitcoin_reader(chain.node.url, liar.url).snapshot([place], height=1, block_hash="", witnesses=2)
    with Liar(chain) as honest, Liar(chain) as second:
        urls = (chain.node.url, honest.url, liar.url)
        assert bitcoin_reader(*urls).snapshot([place], height=1, block_hash="", witnesses=2).units == (50_000,)
        # Two against two are no witnesses.
        second.answers["gettxout"] = liar.answers["gettxout"]
        with pytest.raises(DisagreementError, match="of one block"):
            bitcoin_reader(*urls, second.url).snapshot([place], height=1, block_hash="", witnesses=2)


def test_a_departures_fee_is_the_majoritys(chain: Chain, liar: Liar) -> None:
    by = chain.node.pay((OURS, 50_000), fee_units=5_000)
    block = chain.scan(chain.node.mine()).block

    def shown(fee: float | None) -> Any:
        return lambda *params: chain.node.ask("getrawtransaction", *params) | {"fee": fee}

    liar.answers["getrawtransaction"] = shown(0.5)
    with pytest.raises(DisagreementError, match="do not agree"):
        bitcoin_reader(chain.node.url, liar.url).departure(by, block)
    with Liar(chain) as third:
        for urls in ((liar.url, chain.node.url, third.url), (chain.node.url, third.url, liar.url)):
            departure = bitcoin_reader(*urls).departure(by, block)
            assert departure is not None
            assert departure.fee_units == 5_000

    # If one provider cannot answer, another one is asked.
    liar.answers["getrawtransaction"] = shown(None)
    with pytest.raises(ProviderError, match="too old"):
        bitcoin_reader(liar.url).departure(by, block)
    assert bitcoin_reader(liar.url, chain.node.url).departure(by, block)


def test_a_transaction_without_an_answer_is_not_known_to_be_missing(chain: Chain, liar: Liar) -> None:
    txid = chain.node.pay((OURS, 50_000))
    height = chain.node.mine()
    liar.answers["gettxout"] = Refusal(-28, "Loading block index")

    with pytest.raises(ProviderError, match="Loading"):
        bitcoin_reader(liar.url).locate(txid)
    assert bitcoin_reader(liar.url, chain.node.url).locate(txid) == height
