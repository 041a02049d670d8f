"""The bitcoin reader on a real node: payments to us, spent coins, reorgs, coins at a tip, unexplained departures."""

from __future__ import annotations

import itertools

import pytest

from chains.base import NotYetError, Place, ProviderError, Recorded
from chains.bitcoin.block import ProvedBlock
from chains.bitcoin.transactions import NOWHERE
from chains.net.budget import BudgetSpentError
from chains.net.json_rpc import JsonRpc
from tests.chains.bitcoin.conftest import BITCOIN, OURS, THEIRS, Chain, bitcoin_reader
from tests.peers.bitcoind.hand_mined import BUYER_ADDRESS, MINER_ADDRESS, HandMined
from tests.peers.lying_rpc import LyingRpc

DATA = bytes.fromhex("6a0548656c6c6f")


def recorded(chain: Chain, txid: str, units: int, *, ordinal: str = "0", recipient: str = OURS) -> Recorded:
    block = chain.reader.block(chain.node.height())
    assert block is not None
    return Recorded(
        txid=txid, ordinal=ordinal, currency="BTC", units=units, recipient=recipient,
        height=block.height, block_hash=block.hash,
    )  # fmt: skip


def test_a_node_names_its_chain_and_its_head(chain: Chain) -> None:
    assert list(chain.reader.identify()) == [BITCOIN.chain_identity]
    assert chain.reader.head() == chain.node.height()
    assert chain.reader.final_height() is None
    assert chain.reader.providers == 1


def test_nothing_is_lacking_of_a_node_that_keeps_up(chain: Chain) -> None:
    chain.node.mine()

    assert [list(lacking) for lacking in chain.reader.lacking() if not isinstance(lacking, ProviderError)] == [[]]


def test_two_outputs_to_us_are_two_transfers(chain: Chain) -> None:
    txid = chain.node.pay((OURS, 50_000), (THEIRS, 60_000), (OURS, 70_000), (DATA, 0))
    height = chain.node.mine()

    transfers = chain.scan().transfers
    assert [(one.txid, one.ordinal, one.units, one.recipient) for one in transfers] == [
        (txid, "0", 50_000, OURS),
        (txid, "2", 70_000, OURS),
    ]
    assert {(one.currency, one.sender, one.depth_min) for one in transfers} == {("BTC", "", 0)}
    assert chain.scan().block.height == height


def test_an_output_of_zero_is_no_transfer(chain: Chain) -> None:
    chain.node.ask("generateblock", MINER_ADDRESS, [chain.node.signed((OURS, 0), (OURS, 50_000), (OURS, 0))])

    assert [(one.ordinal, one.units) for one in chain.scan().transfers] == [("1", 50_000)]


def test_a_miners_reward_waits_for_its_own_depth(chain: Chain) -> None:
    chain.node.ask("generatetoaddress", 1, OURS)

    (deposit,) = chain.scan().transfers
    assert (deposit.ordinal, deposit.depth_min) == ("0", 100)


def test_a_spent_coin_is_reported_with_its_spender(chain: Chain) -> None:
    first = chain.node.pay((OURS, 50_000))
    chain.node.mine()
    chain.books.recorded = {(chain.node.coins[-1][0], chain.node.coins[-1][1])}
    chain.node.coins = chain.node.coins[-1:]
    second = chain.node.pay((THEIRS, 1_000))
    chain.node.mine()

    (spent,) = chain.scan().spent
    assert (spent.txid, spent.vout, spent.by_txid) == (first, 1, second)


def test_a_coin_made_and_spent_in_one_block_or_range_is_reported_as_both(chain: Chain) -> None:
    chain.books.addresses_of = {BUYER_ADDRESS}
    for mines in (lambda: 0, chain.node.mine):
        chain.node.coins = chain.node.coins[:1]
        began = chain.node.height()
        first = chain.node.pay((THEIRS, 1_000))
        mines()
        second = chain.node.pay((THEIRS, 1_000))
        chain.node.mine(20)

        scans = [one for one in chain.reader.scan(began, chain.node.height(), chain.books) if one.transfers]
        assert [t.txid for one in scans for t in one.transfers] == [first, second]
        assert [(s.txid, s.by_txid) for one in scans for s in one.spent] == [(first, second)]


def test_blocks_far_from_the_head_are_read_many_at_a_time_and_near_it_one_by_one(chain: Chain) -> None:
    head = chain.node.height()

    far = chain.reader.scan(0, head, chain.books)
    assert [one.block.height for one in far] == list(range(1, 65))
    assert all(one.block.parent_hash == before.block.hash for before, one in itertools.pairwise(far))
    assert [one.block.height for one in chain.reader.scan(head - 3, head, chain.books)] == [head - 2]
    assert chain.reader.scan(head, head, chain.books) == ()


def test_a_height_has_a_block_or_none_yet(chain: Chain) -> None:
    head = chain.node.height()
    first, last = chain.reader.block(0), chain.reader.block(head)

    assert first is not None
    assert last is not None
    assert (first.hash, first.parent_hash) == (BITCOIN.chain_identity, NOWHERE)
    assert chain.scan(head).block == last
    assert chain.reader.block(head + 1) is None
    assert chain.reader.reread(head + 1, chain.books) is None


def test_a_block_that_was_replaced_is_read_as_the_other(chain: Chain) -> None:
    raw = chain.node.signed((OURS, 50_000))
    txid = chain.node.send(raw)
    chain.node.mine(2)
    before = chain.scan(chain.node.height() - 1)
    chain.node.reorg(2, (raw, 1))

    after = [chain.scan(chain.node.height() - 1), chain.scan()]
    assert before.block.hash != after[0].block.hash
    assert [[one.txid for one in scan.transfers] for scan in (before, *after)] == [[txid], [], [txid]]


def test_a_second_reading_finds_the_same(chain: Chain) -> None:
    chain.node.pay((OURS, 50_000))
    height = chain.node.mine()

    assert chain.reader.reread(height, chain.books) == chain.scan(height)


def test_a_replaced_payment_was_never_there(chain: Chain) -> None:
    coins = list(chain.node.coins)
    chain.node.pay((OURS, 50_000))
    chain.node.coins = coins
    other = chain.node.pay((THEIRS, 50_000), (OURS, 1_000), fee_units=20_000)
    chain.node.mine()

    assert [(one.txid, one.ordinal, one.units) for one in chain.scan().transfers] == [(other, "1", 1_000)]


def test_a_deposit_is_read_again_by_its_block_and_by_its_bytes(chain: Chain) -> None:
    txid = chain.node.pay((OURS, 50_000))
    chain.node.mine()
    opinion = chain.reader.second_opinion

    assert opinion(recorded(chain, txid, 50_000)).same == 1
    for wrong in (
        recorded(chain, txid, 50_001),
        recorded(chain, txid, 50_000, recipient=THEIRS),
        recorded(chain, txid, 50_000, ordinal="1"),
        recorded(chain, txid, 50_000, ordinal="2"),
        recorded(chain, "11" * 32, 50_000),
    ):
        assert (opinion(wrong).same, opinion(wrong).other) == (0, 1)
    was = recorded(chain, txid, 50_000)
    chain.node.reorg(1)
    assert (opinion(was).same, opinion(was).other) == (0, 1)


def test_whoever_has_the_block_says_so(chain: Chain) -> None:
    block = chain.reader.block(chain.node.height())
    assert block is not None

    assert chain.reader.agreement(block.height, block.hash).same == 1
    assert chain.reader.agreement(block.height, block.parent_hash).other == 1


def test_a_transaction_is_found_by_its_unspent_outputs(chain: Chain) -> None:
    txid = chain.node.pay((OURS, 50_000))
    height = chain.node.mine()
    chain.node.mine(3)

    assert chain.reader.locate(txid) == height
    assert chain.reader.locate("11" * 32) is None


def test_an_addresss_balance_is_its_unspent_coins(chain: Chain) -> None:
    txid = chain.node.pay((OURS, 50_000), (OURS, 7_000))
    tip = chain.node.mine()
    places = [
        Place(address=OURS, pair=None, coins=((txid, 0), (txid, 1), ("11" * 32, 0))),
        Place(address=THEIRS, pair=None, coins=()),
    ]

    snapshot = chain.reader.snapshot(places, height=1, block_hash="")
    assert (snapshot.height, snapshot.units) == (tip, (57_000, 0))
    assert snapshot.block_hash == chain.scan(tip).block.hash


def test_a_waiting_transaction_spends_no_coin_yet(chain: Chain) -> None:
    chain.node.coins = chain.node.coins[:1]
    txid, vout, units = chain.node.coins[0]
    chain.node.pay((OURS, 50_000))

    place = Place(address=BUYER_ADDRESS, pair=None, coins=((txid, vout),))
    assert chain.reader.snapshot([place], height=1, block_hash="").units == (units,)
    chain.node.mine()
    assert chain.reader.snapshot([place], height=1, block_hash="").units == (0,)


def test_coins_of_a_place_count_wherever_they_lie(chain: Chain) -> None:
    txid = chain.node.pay((OURS, 50_000), (THEIRS, 7_000))
    chain.node.mine()

    place = Place(address=OURS, pair=None, coins=((txid, 0), (txid, 1)))
    assert chain.reader.snapshot([place], height=1, block_hash="").units == (57_000,)


def test_providers_at_different_tips_are_no_two_witnesses(node: HandMined) -> None:
    place = Place(address=OURS, pair=None)
    with LyingRpc(node.url) as behind:
        behind.lies["getbestblockhash"] = node.ask("getbestblockhash")
        node.mine()
        reader = bitcoin_reader(node.url, behind.url)

        assert reader.snapshot([place], height=1, block_hash="").units == (0,)
        with pytest.raises(NotYetError, match="different blocks"):
            reader.snapshot([place], height=1, block_hash="", witnesses=2)


def test_a_departure_is_read_from_its_block(chain: Chain) -> None:
    txid, vout, units = chain.node.coins[0]
    raw = chain.node.signed((THEIRS, 50_000), (DATA, 0), fee_units=5_000)
    by = chain.node.send(raw)
    chain.node.mine()
    block = chain.scan().block

    departure = chain.reader.departure(by, block)
    assert departure is not None
    assert (departure.sender, departure.pair, departure.slot, departure.is_transfer) == ("", None, None, False)
    assert [(one.recipient, one.units) for one in departure.outputs] == [
        (THEIRS, 50_000),
        ("", 0),
        (BUYER_ADDRESS, units - 55_000),
    ]
    assert (departure.raw.hex(), departure.fee_units, departure.spends) == (raw, 5_000, ((txid, vout),))
    assert departure.offer.terms["fee_units"] == departure.offer.ceiling_units == 5_000
    chain.node.mine()
    with pytest.raises(ProviderError, match="not in block"):
        chain.reader.departure(by, chain.scan().block)


def test_costs_are_those_of_the_coin(chain: Chain) -> None:
    (cost,) = chain.reader.costs(cap_units=300).values()

    assert 0 < cost.sweep_units < cost.payout_units


def test_a_step_that_may_ask_no_more_keeps_the_blocks_that_it_read(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    proved = chain.reader._blocks.proved

    def few(node: JsonRpc, height: int) -> ProvedBlock:
        if height == 3:
            raise BudgetSpentError("the step has asked enough")
        return proved(node, height)

    monkeypatch.setattr(chain.reader._blocks, "proved", few)
    assert [one.block.height for one in chain.reader.scan(0, chain.node.height(), chain.books)] == [1, 2]
    with pytest.raises(BudgetSpentError):
        chain.reader.scan(2, chain.node.height(), chain.books)
