"""False blocks of providers: their parts contradict each other, or hold numbers that no chain has. None is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chains.base import DisagreementError, ProviderError
from devstack.solana.programs import TOKEN_2022
from tests.chains.solana.world import OTHER, OURS, SECOND, THEIRS, Twist, World, lying, lying_nodes, recorded
from tests.peers.json_rpc_node import Raw
from tests.peers.lying_rpc import DOWN, GARBAGE, HTML
from tests.peers.ours import EVERYBODY, NOBODY
from tests.peers.solana.chain import BUYER, SOL

Change = Callable[[dict[str, Any]], object]


def _paid(chain: World) -> int:
    """Let a transaction pay us SOL and tokens; return its slot."""
    calls = [*chain.solana.token_calls(OURS, 5), BUYER.coin(OURS, SOL), BUYER.coin(SECOND, SOL)]
    return chain.included(chain.solana.signed(calls)).block.height


def _block(change: Change) -> Twist:
    """Change a block that has transactions."""

    def twist(truth: Any, _params: list[Any]) -> Any:
        if truth.get("transactions"):
            change(truth)
        return truth

    return twist


def _tx(change: Change) -> Change:
    return lambda block: change(block["transactions"][0])


def _meta(change: Change) -> Change:
    return lambda block: change(block["transactions"][0]["meta"])


def _ours(meta: dict[str, Any]) -> dict[str, Any]:
    """Return our token account after a transaction."""
    holding: dict[str, Any] = next(each for each in meta["postTokenBalances"] if each["owner"] == OURS)
    return holding


def _holding(**values: Any) -> Change:
    return _meta(lambda meta: _ours(meta).update(values))


def _amount(digits: object) -> Change:
    return _meta(lambda meta: _ours(meta)["uiTokenAmount"].update(amount=digits))


def _twice(block: dict[str, Any]) -> None:
    block["transactions"] *= 2


def _key_twice(tx: dict[str, Any]) -> None:
    """Name our address a second time, at the end, with the same change of balance."""
    keys, meta = tx["transaction"]["accountKeys"], tx["meta"]
    place = next(number for number, key in enumerate(keys) if key["pubkey"] == OURS)
    keys.append(keys[place])
    for balances in ("preBalances", "postBalances"):
        meta[balances].append(meta[balances][place])


CHANGES: dict[str, Change] = {
    "a balance less": _meta(lambda meta: meta["postBalances"].pop()),
    "a balance more": _meta(lambda meta: meta["preBalances"].append(1)),
    "a key less": _tx(lambda tx: tx["transaction"]["accountKeys"].pop()),
    "an account twice": _tx(_key_twice),
    "a balance below nothing": _meta(lambda meta: meta["postBalances"].__setitem__(1, -1)),
    "a balance of no chain's": _meta(lambda meta: meta["postBalances"].__setitem__(1, 2**63)),
    "half a lamport": _meta(lambda meta: meta["postBalances"].__setitem__(1, 1.5)),
    "a balance in words": _meta(lambda meta: meta["postBalances"].__setitem__(1, "1")),
    "a fee below nothing": _meta(lambda meta: meta.update(fee=-1)),
    "no effects": _tx(lambda tx: tx.update(meta=None)),
    "no outcome": _meta(lambda meta: meta.pop("err")),
    "no tokens": _meta(lambda meta: meta.update(postTokenBalances=None)),
    "no tokens before": _meta(lambda meta: meta.update(preTokenBalances=None)),
    "a token at no key": _holding(accountIndex=99),
    "a token below the first key": _holding(accountIndex=-1),
    "two tokens at one key": _meta(lambda meta: meta["postTokenBalances"].append(_ours(meta))),
    "a token without an owner": _holding(owner=""),
    "a token without a program": _meta(lambda meta: _ours(meta).pop("programId")),
    "an amount below nothing": _amount("-5"),
    "an amount beyond a token's": _amount(str(2**64)),
    "an endless amount": _amount("9" * 10_000),
    "digits of another script": _amount("\u0665"),
    "an amount as a number": _amount(5),
    "a transaction twice": _twice,
    "a signature less": _tx(lambda tx: tx["transaction"].update(signatures=[])),
    "a signature more": _tx(lambda tx: tx["transaction"]["signatures"].append("1" * 64)),
    "no signature": _tx(lambda tx: tx["transaction"].update(signatures=["abc"])),
    "another spelling": _tx(lambda tx: tx["transaction"].update(signatures=["1" + tx["transaction"]["signatures"][0]])),
    "no signer": _tx(lambda tx: tx["transaction"]["accountKeys"][0].update(signer=False)),
    "a sender that is no address": _tx(lambda tx: tx["transaction"]["accountKeys"][0].update(pubkey="0" * 44)),
    "no hash": lambda block: block.update(blockhash="0x" + "0" * 64),
    "a short hash": lambda block: block.update(blockhash="1" * 31),
    "no hash of the parent": lambda block: block.update(previousBlockhash=""),
    "a parent above": lambda block: block.update(parentSlot=2**40),
    "a parent below nothing": lambda block: block.update(parentSlot=-1),
    "no time": lambda block: block.update(blockTime=None),
    "a time of no clock": lambda block: block.update(blockTime=2**62),
    "a time before all": lambda block: block.update(blockTime=-(10**11)),
    "a time in the year 2300": lambda block: block.update(blockTime=10_413_792_000),
    "no number of blocks": lambda block: block.update(blockHeight=None),
    "a number of blocks of no chain's": lambda block: block.update(blockHeight=2**60),
    "no list": lambda block: block.update(transactions=None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_block_whose_parts_contradict_each_other_is_not_read(chain: World, name: str) -> None:
    slot = _paid(chain)
    twist = _block(CHANGES[name])

    with lying(chain, getBlock=twist) as liar:
        with pytest.raises(ProviderError):
            liar.scan(slot)
        with pytest.raises(ProviderError):
            liar.reader.reread(slot, EVERYBODY)
    with lying(chain, providers=2, getBlock=twist) as one_of_two:
        assert one_of_two.scan(slot) == chain.scan(slot)
    assert len(chain.scan(slot).transfers) == 3


def test_a_block_with_a_transaction_twice_is_refused_though_it_pays_others(chain: World) -> None:
    slot = chain.included(chain.solana.transfer(THEIRS, SOL)).block.height

    with lying(chain, getBlock=_block(_twice)) as liar, pytest.raises(ProviderError, match="a transaction twice"):
        liar.scan(slot)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (_holding(programId=str(TOKEN_2022)), 2),
        (_meta(lambda meta: [each.update(mint=THEIRS) for each in meta["postTokenBalances"]]), 2),
        (_holding(owner=THEIRS), 2),
        (_meta(lambda meta: meta.update(err={"InstructionError": [0, {"Custom": 1}]})), 0),
        (_amount("0"), 2),
    ],
    ids=["another program", "another mint", "another owner", "failed", "nothing"],
)
def test_tokens_of_another_kind_count_for_nothing(chain: World, change: Change, left: int) -> None:
    slot = _paid(chain)

    with lying(chain, getBlock=_block(change)) as other:
        assert len(other.scan(slot).transfers) == left
        assert other.scan(slot).sent == chain.scan(slot).sent


def test_an_account_that_changed_its_owner_brings_nothing(chain: World) -> None:
    """Its balance may be old: the former owner may have held it before."""
    chain.solana.give_tokens(OURS, 1)
    slot = _paid(chain)

    def changed(meta: dict[str, Any]) -> None:
        for each in meta["preTokenBalances"]:
            if each["owner"] == OURS:
                each["owner"] = OTHER.address

    with lying(chain, getBlock=_block(_meta(changed))) as other:
        assert [each.currency for each in other.scan(slot).transfers] == ["SOL", "SOL"]


@pytest.mark.parametrize(
    "slots",
    [
        lambda truth: truth[::-1],
        lambda truth: [truth[0], *truth],
        lambda truth: [truth[0] - 5, *truth],
        lambda truth: [*truth, truth[-1] + 5],
        lambda truth: [-1, *truth],
        lambda truth: {"slots": truth},
        lambda truth: [*truth, 2**60],
    ],
    ids=["backwards", "twice", "too low", "too high", "below nothing", "an object", "of no chain"],
)
def test_a_list_of_other_blocks_than_were_asked_for_is_refused(
    chain: World, slots: Callable[[list[int]], object]
) -> None:
    chain.solana.mine(9)
    head = chain.reader.head()

    with lying(chain, getBlocks=lambda truth, _params: slots(truth)) as liar, pytest.raises(ProviderError):
        liar.reader.scan(head - 4, head, NOBODY)


def test_a_block_between_two_that_is_left_out_is_missed(chain: World) -> None:
    chain.solana.mine(9)
    head = chain.reader.head()

    def without(truth: list[int], _params: list[Any]) -> list[int]:
        return [each for each in truth if each != head - 2]

    with lying(chain, getBlocks=without) as liar, pytest.raises(ProviderError, match=f"lacks block {head - 2}"):
        liar.reader.scan(head - 4, head, NOBODY)
    with lying(chain, providers=2, getBlocks=without) as one_of_two:
        scans = one_of_two.reader.scan(head - 4, head, NOBODY)
    assert [scan.block.height for scan in scans] == list(range(head - 3, head + 1))


def test_blocks_that_are_not_upon_each_other_are_refused(chain: World) -> None:
    chain.solana.mine(9)
    head = chain.reader.head()

    def torn(truth: Any, params: list[Any]) -> Any:
        return truth | {"previousBlockhash": THEIRS} if params[0] == head - 1 else truth

    with lying(chain, getBlock=torn) as liar, pytest.raises(ProviderError, match="not upon"):
        liar.reader.scan(head - 4, head, NOBODY)


@pytest.mark.parametrize("field", ["blockTime", "blockHeight"])
def test_a_header_that_another_provider_contradicts_dates_no_payment(chain: World, field: str) -> None:
    """The time decides whether an invoice was paid in time, and no hash proves it."""
    slot = _paid(chain)

    def later(truth: Any, _params: list[Any]) -> Any:
        return truth | {field: truth[field] + 1}

    with lying(chain, providers=2, getBlock=later) as liar:
        with pytest.raises(DisagreementError):
            liar.scan(slot)
        with pytest.raises(DisagreementError):
            liar.reader.reread(slot, EVERYBODY)
        with pytest.raises(DisagreementError):
            liar.reader.block(slot)
    with lying(chain, getBlock=later) as alone:
        assert len(alone.scan(slot).transfers) == 3


def test_a_lagging_provider_contradicts_no_header(chain: World) -> None:
    slot = _paid(chain)

    with lying_nodes(chain, 2) as (two, peers):
        peers[1].failure = DOWN
        assert two.scan(slot) == chain.scan(slot)


@pytest.mark.parametrize("answer", [DOWN, HTML, GARBAGE, Raw(status=429, retry_after="1"), Raw(status=500)])
def test_a_provider_that_fails_is_replaced_by_the_next(chain: World, answer: Raw) -> None:
    slot = _paid(chain)

    with lying_nodes(chain, 2) as (two, peers):
        peers[0].failure = answer
        assert two.scan(slot) == chain.scan(slot)
    with lying(chain, getBlock=answer) as alone, pytest.raises(ProviderError):
        alone.scan(slot)


def test_another_transaction_than_was_asked_for_is_no_opinion(chain: World) -> None:
    scan = chain.scan(_paid(chain))

    def other(truth: Any, _params: list[Any]) -> Any:
        truth["transaction"]["signatures"] = ["1" * 64]
        return truth

    with lying(chain, getTransaction=other) as liar:
        opinion = liar.reader.second_opinion(recorded(scan))
    assert (opinion.same, opinion.other) == (0, 0)
    assert "another transaction" in opinion.problem


@pytest.mark.parametrize("head", [-1, 2**60, "1", None, 1.5])
def test_a_head_of_no_chain_is_refused(chain: World, head: object) -> None:
    with lying(chain, getSlot=head) as liar, pytest.raises(ProviderError):
        liar.reader.head()


def test_departures_and_costs_are_read_by_the_spends(chain: World) -> None:
    scan = chain.scan(_paid(chain))

    departure = chain.reader.departure(scan.transfers[0].txid, scan.block)

    assert departure is not None
    assert departure.txid == scan.transfers[0].txid
    assert set(chain.reader.costs(cap_units=SOL)) == {"SOL", "USDT", "USDC"}


@pytest.mark.parametrize("name", ["a\0b", "1" * 5_000, "\u00e9" * 40, "not an address"])
@pytest.mark.parametrize("place", ["key", "signature", "owner"])
def test_no_text_that_is_no_name_leaves_a_block(chain: World, name: str, place: str) -> None:
    """The database refuses some of them, and would at each step: a text is judged while its node is asked."""
    slot = chain.included(chain.solana.token(THEIRS, 5)).block.height
    changes: dict[str, Change] = {
        "key": _tx(lambda tx: tx["transaction"]["accountKeys"][-1].update(pubkey=name)),
        "signature": _tx(lambda tx: tx["transaction"].update(signatures=[name])),
        "owner": _meta(lambda meta: meta["postTokenBalances"][0].update(owner=name)),
    }
    with lying(chain, getBlock=_block(changes[place])) as one, pytest.raises(ProviderError, match="not a"):
        one.scan(slot)
    with lying(chain, providers=2, getBlock=_block(changes[place])) as both:
        assert both.scan(slot).block.height == slot


def test_a_transaction_without_keys_has_no_voice(chain: World) -> None:
    scan = chain.included(chain.solana.token(OURS, 5))

    def bare(truth: Any, _params: list[Any]) -> Any:
        truth["transaction"]["message"] |= {"accountKeys": [], "header": {"numRequiredSignatures": 0}}
        truth["meta"] |= {name: [] for name in ("preBalances", "postBalances", "preTokenBalances", "postTokenBalances")}
        return truth

    with lying(chain, providers=2, getTransaction=bare) as both:
        answer = both.reader.second_opinion(recorded(scan))
    assert (answer.same, answer.other) == (1, 0)


@pytest.mark.parametrize("liar", [0, 2])
@pytest.mark.parametrize("lie", [{"blockHeight": 5}, {"blockTime": 7}])
def test_of_three_providers_one_with_another_header_rests(chain: World, lie: dict[str, int], liar: int) -> None:
    slot = _paid(chain)
    with lying_nodes(chain, 3) as (three, nodes):
        nodes[liar].lies["getBlock"] = lambda truth, _params: truth | lie
        scan = three.scan(slot)
        assert (len(scan.transfers), scan.block.count) == (3, chain.scan(slot).block.count)
        assert three.reader.block(slot) == chain.reader.block(slot)
