"""The reader goes over holes that a later block proves, waits for blocks that are missing, and counts providers."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from solders.pubkey import Pubkey

from chains.base import (
    SKIPPED,
    Agreement,
    Block,
    DisagreementError,
    NotYetError,
    Place,
    ProviderError,
    WrongChainError,
)
from chains.solana.nodes import LackedError
from devstack.solana.programs import TOKEN_2022, holding_bytes
from tests.chains.solana.world import (
    HOT_WALLET,
    OURS,
    SECOND,
    SILENT,
    THEIRS,
    USDT_PAIR,
    World,
    lying,
    lying_nodes,
    recorded,
    world,
)
from tests.peers.json_rpc_node import Refusal
from tests.peers.ours import EVERYBODY, NOBODY
from tests.peers.solana.chain import BUYER, NETWORK, SOL, USDT


def _height(chain: World) -> int:
    return chain.solana.chain.blocks[-2].slot


def test_blocks_are_read_as_of_finalized(chain: World) -> None:
    final = _height(chain)

    assert (chain.reader.head(), chain.reader.final_height()) == (final, final)
    assert chain.reader.block(final + 1) is None
    assert chain.reader.scan(final, final + 1, NOBODY) == ()
    assert chain.reader.reread(final + 1, NOBODY) is None
    assert chain.reader.scan(final - 1, final, NOBODY)[0].block == chain.reader.block(final)
    assert (chain.reader.providers, chain.reader.identify()) == (1, [NETWORK.chain_identity])


def test_a_hole_is_what_a_later_block_goes_over(chain: World) -> None:
    before = _height(chain)
    chain.solana.chain.skip(3)
    chain.solana.mine(3)

    (first, *_) = chain.reader.scan(before + 1, before + 9, NOBODY)

    assert (first.block.height, first.block.parent_height) == (before + 5, before + 1)
    for slot in range(before + 2, before + 5):
        assert chain.reader.block(slot) is SKIPPED
        assert chain.reader.reread(slot, NOBODY) is SKIPPED
    assert chain.reader.agreement(before + 3, "any") == Agreement(same=0, other=1)
    assert isinstance(chain.reader.reread(before + 5, NOBODY), type(first))


def test_a_gap_of_a_thousand_slots(chain: World) -> None:
    before = chain.solana.chain.head.slot
    chain.solana.chain.skip(1_000)
    # At the head, nothing shows yet that the slots were skipped.
    assert chain.reader.block(before + 500) is None
    chain.solana.mine(3)
    head = chain.reader.head()

    (first, *_) = chain.reader.scan(before, head, NOBODY)

    assert (first.block.height, first.block.parent_height) == (before + 1_001, before)
    assert {chain.reader.block(before + more) for more in (1, 500, 1_000)} == {SKIPPED}


def test_a_gap_without_an_end_is_searched_within_bounds(chain: World) -> None:
    with lying(chain, getBlocks=[]) as liar, pytest.raises(LackedError, match="lists no block"):
        liar.reader.scan(1, 10**9, NOBODY)


@pytest.mark.parametrize("code", [-32001, -32004, -32007, -32009, -32014, None])
def test_a_pruned_slot_is_no_hole(chain: World, code: int | None) -> None:
    chain.solana.mine(5)
    slot = _height(chain) - 2
    answer = None if code is None else Refusal(code, "there is none")

    def hides(truth: Any, params: list[Any]) -> Any:
        return answer if params[0] == slot else truth

    def lists_none(truth: list[int], _params: list[Any]) -> list[int]:
        return [each for each in truth if each != slot]

    for lies in ({"getBlock": hides}, {"getBlock": hides, "getBlocks": lists_none}):
        with lying(chain, **lies) as pruned:
            with pytest.raises(LackedError):
                pruned.reader.block(slot)
            with pytest.raises(LackedError):
                pruned.reader.scan(slot - 1, slot + 2, NOBODY)
            with pytest.raises(LackedError):
                pruned.reader.reread(slot, NOBODY)
        with lying(chain, providers=2, **lies) as one_of_two:
            assert isinstance(one_of_two.reader.block(slot), Block)
            (first, *_) = one_of_two.reader.scan(slot - 1, slot + 2, NOBODY)
            assert first.block.height == slot


def test_a_parent_that_no_provider_has_halts_visibly(chain: World) -> None:
    chain.solana.mine(9)
    before, head = chain.solana.chain.blocks[-9].slot, _height(chain)
    chain.solana.chain.prune(before + 4)

    with pytest.raises(LackedError, match=f"lacks block {before + 3}"):
        chain.reader.scan(before, head, NOBODY)
    with pytest.raises(LackedError):
        chain.reader.block(before + 1)


def test_the_newest_block_that_a_node_lists_and_lacks_is_waited_for(chain: World) -> None:
    head = _height(chain)

    with lying(chain, getBlock=Refusal(-32004, f"Block not available for slot {head}")) as late:
        assert late.reader.scan(head - 1, head, NOBODY) == ()
        with pytest.raises(LackedError):
            late.reader.scan(head - 2, head, NOBODY)


def test_far_behind_several_blocks_come_at_once_and_in_order(chain: World) -> None:
    before = chain.solana.chain.head.slot
    chain.solana.mine(30)

    scans = chain.reader.scan(before, _height(chain), NOBODY)

    assert [scan.block.height for scan in scans] == list(range(before + 1, before + 9))
    assert all(scan.read_by for scan in scans)


def test_blocks_before_a_failure_are_read(chain: World) -> None:
    before = chain.solana.chain.head.slot
    chain.solana.mine(9)

    def fails(truth: Any, params: list[Any]) -> Any:
        return Refusal(-32603, "internal") if params[0] == before + 3 else truth

    with lying(chain, getBlock=fails) as liar:
        assert [scan.block.height for scan in liar.reader.scan(before, before + 8, NOBODY)] == [before + 1, before + 2]
        with pytest.raises(ProviderError, match="internal"):
            liar.reader.scan(before + 2, before + 8, NOBODY)


def test_a_block_with_an_unknown_version(chain: World) -> None:
    """Blocks with transactions of any version are asked for, read by their balances, and never passed over."""
    paid = chain.included(chain.solana.transfer(OURS, SOL, version=1))
    slot, asked = paid.block.height, []

    def newer(truth: Any, params: list[Any]) -> Any:
        asked.append(params[1]["maxSupportedTransactionVersion"])
        for each in truth.get("transactions", ()):
            each["version"] = 77
        return truth

    def refused(truth: Any, params: list[Any]) -> Any:
        return Refusal(-32015, "Transaction version (1) is not supported") if params[0] == slot else truth

    with lying(chain, getBlock=newer) as liar:
        assert [each.units for each in liar.scan(slot).transfers] == [SOL]
    assert set(asked) == {255}
    with lying(chain, getBlock=refused) as old, pytest.raises(ProviderError, match="not supported"):
        old.scan(slot)
    with lying(chain, providers=2, getBlock=refused) as one_of_two:
        assert one_of_two.scan(slot).transfers == paid.transfers


def test_finalized_slot_differs(chain: World) -> None:
    """Of two providers the lower final slot counts, and a slot with two blocks has no majority."""
    head = _height(chain)

    def ahead(truth: int, _params: list[Any]) -> int:
        return truth + 1_000

    def other(truth: Any, params: list[Any]) -> Any:
        return truth | {"blockhash": THEIRS} if params[0] == head else truth

    with lying(chain, providers=2, getSlot=ahead) as liar:
        assert (liar.reader.final_height(), liar.reader.head()) == (head, head)
    with lying(chain, providers=2, getBlock=other) as liar:
        honest = chain.scan(head).block
        assert liar.reader.agreement(head, honest.hash) == Agreement(same=1, other=1)
        assert liar.reader.agreement(head, THEIRS) == Agreement(same=1, other=1)


def test_without_a_second_final_slot_nothing_is_final(chain: World) -> None:
    assert world(chain.solana, [chain.solana.url, SILENT]).reader.final_height() is None


def test_another_chain_at_the_provider(chain: World) -> None:
    with lying(chain, providers=2, getGenesisHash="5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d") as other:
        assert other.reader.identify() == ["5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d", NETWORK.chain_identity]
        scan = other.scan(_height(chain))
        assert other.reader.agreement(scan.block.height, scan.block.hash) == Agreement(same=1, other=0)
    with (
        lying(chain, getGenesisHash="5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d") as alone,
        pytest.raises(WrongChainError),
    ):
        alone.scan(_height(chain))


def test_a_reorg_is_seen_by_hashes(chain: World) -> None:
    slot = _height(chain)
    before = chain.reader.block(slot)
    chain.solana.chain.reorg(2)

    after = chain.reader.block(slot)

    assert isinstance(before, Block)
    assert isinstance(after, Block)
    assert before.hash != after.hash
    assert chain.reader.agreement(slot, before.hash) == Agreement(same=0, other=1)


def test_a_block_upon_another_is_taken_if_its_node_has_that_one(chain: World) -> None:
    chain.solana.mine(3)
    head = _height(chain)

    scan = chain.reader.scan(head - 1, head, NOBODY, upon=THEIRS)[0]

    assert scan.block.parent_hash != THEIRS

    def other(truth: Any, params: list[Any]) -> Any:
        return truth | {"previousBlockhash": THEIRS} if params[0] == head else truth

    with lying(chain, getBlock=other) as liar, pytest.raises(ProviderError, match="does not stand upon"):
        liar.reader.scan(head - 1, head, NOBODY, upon=scan.block.parent_hash)


def test_a_deposit_is_read_again_by_its_transaction(chain: World) -> None:
    scan = chain.included(chain.solana.token(OURS, 5))
    methods: list[str] = []

    def watch(truth: Any, params: list[Any]) -> Any:
        methods.append(params[1]["transactionDetails"])
        return truth

    with lying(chain, getBlock=watch) as watched:
        assert watched.reader.second_opinion(recorded(scan)) == Agreement(same=1, other=0)
    assert methods == ["none"]
    for change in (
        {"units": 6}, {"ordinal": "0"}, {"currency": "USDC"}, {"recipient": SECOND}, {"block_hash": THEIRS},
        {"txid": chain.included(chain.solana.transfer(OURS, SOL)).transfers[0].txid},
    ):  # fmt: skip
        assert chain.reader.second_opinion(recorded(scan, **change)) == Agreement(same=0, other=1)


def test_a_deposit_of_a_lookup_table_is_read_again(chain: World) -> None:
    table = chain.solana.table(OURS)
    chain.solana.mine()
    scan = chain.included(chain.solana.signed([BUYER.coin(OURS, SOL)], tables=[table]))

    assert chain.reader.second_opinion(recorded(scan)) == Agreement(same=1, other=0)


def test_a_node_without_the_transaction_answers_by_its_block(chain: World) -> None:
    """Null from getTransaction proves nothing: nodes forget single transactions sooner than blocks."""
    scan = chain.included(chain.solana.transfer(OURS, SOL))
    slot = scan.block.height

    def emptied(truth: Any, params: list[Any]) -> Any:
        return truth | {"transactions": []} if params[0] == slot and "transactions" in truth else truth

    with lying(chain, getTransaction=None) as forgetful:
        assert forgetful.reader.second_opinion(recorded(scan)) == Agreement(same=1, other=0)
    with lying(chain, getTransaction=None, getBlock=emptied) as denying:
        assert denying.reader.second_opinion(recorded(scan)) == Agreement(same=0, other=1)
    with lying(chain, getTransaction=Refusal(-32011, "history is not available")) as unable:
        opinion = unable.reader.second_opinion(recorded(scan))
        assert (opinion.same, opinion.other) == (0, 0)
        assert "history" in opinion.problem
    with lying(chain, getTransaction=lambda truth, _params: truth | {"slot": slot + 1}) as elsewhere:
        assert elsewhere.reader.second_opinion(recorded(scan)) == Agreement(same=0, other=1)


def test_a_deposit_in_a_slot_that_a_node_skipped_is_contradicted(chain: World) -> None:
    scan = chain.included(chain.solana.transfer(OURS, SOL))
    chain.solana.chain.skip(1)
    chain.solana.mine(3)
    skipped = scan.block.height + 3

    assert chain.reader.block(skipped) is SKIPPED
    assert chain.reader.second_opinion(recorded(scan, height=skipped)) == Agreement(same=0, other=1)
    future = chain.reader.second_opinion(recorded(scan, height=skipped + 1_000))
    assert (future.same, future.other) == (0, 0)


def test_a_transaction_is_located_once_it_is_final(chain: World) -> None:
    txid = chain.solana.send(chain.solana.transfer(OURS, SOL))
    slot = chain.solana.mine()

    assert chain.reader.locate(txid) is None
    chain.solana.mine()
    assert chain.reader.locate(txid) == slot
    chain.solana.mine(200)
    assert chain.reader.locate(txid) == slot
    assert chain.reader.locate("1" * 64) is None


def test_inclusions_are_counted_by_blocks(chain: World) -> None:
    scan = chain.included(chain.solana.transfer(OURS, SOL))
    txid, block = scan.transfers[0].txid, scan.block

    def without(truth: Any, _params: list[Any]) -> Any:
        return truth | {"signatures": []} if "signatures" in truth else truth

    def other(truth: Any, _params: list[Any]) -> Any:
        return truth | {"blockhash": THEIRS}

    with lying(chain, providers=3, getBlock=without) as liar:
        assert liar.reader.inclusions(block, [txid, "none"]) == {
            txid: Agreement(same=2, other=1),
            "none": Agreement(same=0, other=3),
        }
    for lie in (other, Refusal(-32007, "skipped")):
        with lying(chain, providers=2, getBlock=lie) as liar:
            assert liar.reader.inclusions(block, [txid]) == {txid: Agreement(same=1, other=0)}


PLACES = [
    Place(address=HOT_WALLET, pair=None), Place(address=HOT_WALLET, pair=USDT_PAIR), Place(address=THEIRS, pair=None),
    Place(address=THEIRS, pair=USDT_PAIR),
]  # fmt: skip


@pytest.fixture
def rich(chain: World) -> World:
    chain.solana.give(HOT_WALLET, 10 * SOL)
    chain.solana.give_tokens(HOT_WALLET, 7)
    chain.solana.settle()
    return chain


def test_balances_are_of_one_final_slot(rich: World) -> None:
    final = _height(rich)
    block = rich.reader.block(final)
    assert isinstance(block, Block)

    snapshot = rich.reader.snapshot(PLACES, height=final, block_hash="any")

    assert (snapshot.height, snapshot.block_hash, snapshot.units) == (final, block.hash, (10 * SOL, 7, 0, 0))
    rich.solana.give_tokens(HOT_WALLET, 1)
    assert rich.reader.snapshot(PLACES, height=final, block_hash="any").units[1] == 7
    with pytest.raises(ProviderError, match="context slot"):
        rich.reader.snapshot(PLACES, height=final + 1, block_hash="any")


def test_many_places_are_of_one_slot_too(rich: World) -> None:
    asked: list[int] = []

    def moves(changes: int) -> Any:
        def later(truth: Any, _params: list[Any]) -> Any:
            asked.append(len(asked))
            truth["context"]["slot"] -= min(asked[-1], changes) % 2
            return truth

        return later

    many = PLACES * 40
    with lying(rich, getMultipleAccounts=moves(2)) as hasty:
        assert len(hasty.reader.snapshot(many, height=1, block_hash="any").units) == len(many)
    asked.clear()
    with lying(rich, getMultipleAccounts=moves(99)) as endless, pytest.raises(NotYetError, match="faster"):
        endless.reader.snapshot(many, height=1, block_hash="any")


def test_a_token_account_that_is_not_ours_holds_nothing(rich: World) -> None:
    def changed(**account: Any) -> Any:
        def twist(truth: Any, _params: list[Any]) -> Any:
            truth["value"][1] |= account
            return truth

        return twist

    data = _data(owner=THEIRS)
    for twist in (changed(owner=str(TOKEN_2022)), changed(data=[data, "base64"])):
        with lying(rich, getMultipleAccounts=twist) as liar:
            assert liar.reader.snapshot(PLACES, height=1, block_hash="any").units[1] == 0
    for rubbish in (
        [data[:-8], "base64"],
        ["?" * 96, "base64"],
        [data, "base58"],
        [_data(mint=THEIRS), "base64"],
    ):
        with lying(rich, getMultipleAccounts=changed(data=rubbish)) as liar, pytest.raises(ProviderError):
            liar.reader.snapshot(PLACES, height=1, block_hash="any")


def _data(*, mint: str = USDT, owner: str = HOT_WALLET) -> str:
    return base64.b64encode(holding_bytes(Pubkey.from_string(mint), Pubkey.from_string(owner), 7)[:72]).decode()


def test_accounts_of_another_slot_or_number_are_not_believed(rich: World) -> None:
    final = _height(rich)

    for twist in (
        lambda truth, _params: truth | {"value": truth["value"][:-1]},
        lambda truth, _params: truth | {"context": {"slot": final - 1}},
        lambda truth, _params: truth | {"context": {"slot": -1}},
        lambda truth, _params: truth | {"value": [truth["value"][0] | {"lamports": -1}, *truth["value"][1:]]},
        lambda truth, _params: truth | {"value": [truth["value"][0] | {"lamports": 2**63}, *truth["value"][1:]]},
    ):
        with lying(rich, getMultipleAccounts=twist) as liar, pytest.raises(ProviderError):
            liar.reader.snapshot(PLACES, height=final, block_hash="any")


def test_two_witnesses_show_the_same_balances_though_after_different_slots(rich: World) -> None:
    final = _height(rich)

    def later(_truth: Any, params: list[Any]) -> Any:
        rich.solana.mine()
        return rich.solana.ask("getMultipleAccounts", *params)

    def richer(truth: Any, _params: list[Any]) -> Any:
        truth["value"][0]["lamports"] += 1
        return truth

    with lying(rich, providers=2, getMultipleAccounts=later) as slow:
        snapshot = slow.reader.snapshot(PLACES, height=1, block_hash="any", witnesses=2)
        assert snapshot.units == (10 * SOL, 7, 0, 0)
        assert snapshot.height in {final, final + 1}
    with lying(rich, providers=2, getMultipleAccounts=richer) as liar, pytest.raises(DisagreementError):
        liar.reader.snapshot(PLACES, height=1, block_hash="any", witnesses=2)
    with lying(rich, providers=3, getMultipleAccounts=richer) as liar:
        assert liar.reader.snapshot(PLACES, height=1, block_hash="any", witnesses=2).units[0] == 10 * SOL
    with pytest.raises(NotYetError, match="too few"):
        world(rich.solana, [rich.solana.url, SILENT]).reader.snapshot(PLACES, height=1, block_hash="any", witnesses=2)


def test_nodes_are_asked_for_what_the_scan_leans_on(chain: World) -> None:
    chain.included(chain.solana.token(OURS, 1))

    assert list(chain.reader.lacking()) == [[]]


def _nameless(truth: Any, _params: list[Any]) -> Any:
    for each in truth.get("transactions", ()):
        for holding_ in each["meta"]["postTokenBalances"]:
            del holding_["owner"]
    return truth


def _unsigned(truth: Any, _params: list[Any]) -> Any:
    for each in truth.get("transactions", ()):
        each["transaction"]["signatures"] = []
    return truth


@pytest.mark.parametrize(
    ("method", "lie", "words"),
    [
        ("getBlock", _unsigned, "by its id"),
        ("getBlock", Refusal(-32015, "version"), "newest version"),
        ("getBlock", Refusal(-32011, "history"), "no history"),
        ("getBlock", Refusal(-32601, "method"), "lacks getBlock"),
        ("getBlock", _nameless, "owners"),
        ("getTransaction", None, "by its id"),
        ("getTransaction", Refusal(-32011, "history"), "by its id"),
        ("getFirstAvailableBlock", lambda truth, _params: truth + 2, "no block below"),
    ],
)
def test_a_node_that_lacks_a_feature_is_found_out(chain: World, method: str, lie: object, words: str) -> None:
    chain.solana.send(chain.solana.token(OURS, 1))
    chain.solana.mine(2)

    with lying(chain, **{method: lie}) as old:
        ((line,),) = old.reader.lacking()  # type: ignore[misc]
        assert words in line


def test_a_node_that_fails_is_reported_as_failing(chain: World) -> None:
    with lying(chain, getBlock=Refusal(-32603, "internal")) as broken:
        [problem] = broken.reader.lacking()
    assert isinstance(problem, ProviderError)


def test_all_recipients_of_several_blocks_are_asked_for_once(chain: World) -> None:
    asked: list[int] = []
    for _ in range(3):
        chain.solana.send(chain.solana.transfer(OURS, SOL))
        chain.solana.mine()
    chain.solana.settle()

    class Counts:
        def addresses(self, seen: Any) -> Any:
            asked.append(len(seen))
            return EVERYBODY.addresses(seen)

        def coins(self, _seen: Any) -> Any:
            return ()

    scans = chain.reader.scan(_height(chain) - 4, _height(chain), Counts())

    assert sum(len(scan.transfers) for scan in scans) == 3
    assert asked == [1]


def test_a_new_chain_has_a_second_reading(chain: World) -> None:
    scan = chain.included(chain.solana.transfer(OURS, SOL))

    with lying_nodes(chain, 2) as (two, _):
        again = two.reader.reread(scan.block.height, EVERYBODY, but_by=two.scan(scan.block.height).read_by)
    assert again == scan
