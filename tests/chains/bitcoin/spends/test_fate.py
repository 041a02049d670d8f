"""The fate of a spend, proved by blocks of a real bitcoind behind several providers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from chains.base import ProviderError
from chains.spending import Attempt, Coins, Draft, FateKind, Intent, Output, Sending, Window
from tests.chains.bitcoin.spends.samples import COIN, DEPOSIT_KEYS, RECIPIENTS, WALLET, intent
from tests.chains.bitcoin.spends.world import World
from tests.peers.json_rpc_node import Refusal
from tests.peers.lying_rpc import DOWN, HTML

BEYOND = Refusal(-8, "Block height out of range")


def at_height(height: int, block_hash: str, truth: str, params: list[int]) -> str:
    """Answer getblockhash with another block at one height."""
    return block_hash if params[0] == height else truth


def included(world: World, units: int = 1_000_000) -> tuple[Draft, Attempt, int]:
    """Have a payout included; return its draft, its attempt and the height."""
    draft = world.draft(intent(units))
    attempt = world.sign(draft)
    assert world.spender.send(attempt.raw) is Sending.TAKEN
    return draft, attempt, world.node.mine()


def robbed(world: World) -> tuple[Draft, Attempt, str, int]:
    """Let another transaction that our key signed take a payout's coin."""
    draft, theft = world.draft(intent(1_000_000)), world.draft(intent(2_000_000, to=RECIPIENTS[3]))
    stolen = world.sign(theft)
    return draft, world.sign(draft), stolen.txid, world.include(stolen.raw)


def test_an_inclusion_has_its_fee_and_its_movement_at_every_address(pair: World) -> None:
    pair.fund(COIN, COIN, keys=(WALLET, DEPOSIT_KEYS[0]))
    outputs = tuple(Output(recipient=to, units=150_000_000 // 5) for to in RECIPIENTS)
    draft = pair.draft(Intent(wallet=WALLET, pair=None, outputs=outputs))
    attempt = pair.sign(draft)
    pair.spender.send(attempt.raw)
    height = pair.node.mine()
    fate = pair.fate(draft, attempt, seen={attempt.txid: height})
    fee = draft.offer.terms["fee_units"]

    assert (fate.kind, fate.txid, fate.height) == (FateKind.INCLUDED, attempt.txid, height)
    assert fate.block_hash == pair.node.ask("getblockhash", height)
    assert (fate.is_success, len(fate.outputs), fate.fee_units, fate.is_witnessed) == (True, 5, fee, True)
    moved = Counter({each.address: each.units for each in fate.movements})
    assert moved == {
        **dict.fromkeys(RECIPIENTS, 30_000_000),
        WALLET.address: draft.offer.terms["change_units"] - COIN,
        DEPOSIT_KEYS[0].address: -COIN,
    }
    assert {each.currency for each in fate.movements} == {"BTC"}
    assert moved.total() == -fee


def test_a_payment_to_ourselves_counts_once(alone: World) -> None:
    alone.fund(COIN)
    draft = alone.draft(intent(1_000_000, to=WALLET.address))
    attempt = alone.sign(draft)
    alone.spender.send(attempt.raw)
    fate = alone.fate(draft, attempt, seen={attempt.txid: alone.node.mine()})

    [only] = fate.movements
    assert (only.address, only.units) == (WALLET.address, -fate.fee_units)
    assert fate.fee_units == draft.offer.terms["fee_units"]


def test_another_wallets_transaction_by_our_keys_is_read_wherever_its_change_is(alone: World) -> None:
    """Taken up from the chain, a spend has as its outputs whatever did not come back, in another wallet's order."""
    alone.fund(COIN)
    theirs = (
        Output(recipient=WALLET.address, units=50_000_000), Output(recipient=RECIPIENTS[2], units=10_000_000),
        Output(recipient=WALLET.address, units=10_000_000), Output(recipient=RECIPIENTS[3], units=15_000_000),
        Output(recipient=RECIPIENTS[2], units=10_000_000),
    )  # fmt: skip
    draft = alone.draft(Intent(wallet=WALLET, pair=None, outputs=theirs))
    attempt = alone.sign(draft)
    alone.spender.send(attempt.raw)
    case = alone.case(draft, attempt, seen={attempt.txid: alone.node.mine()})
    left = tuple(output for output in theirs if output.recipient != WALLET.address)
    fate = alone.spender.fate(replace(case, intent=replace(case.intent, outputs=left)))

    fee = draft.offer.terms["fee_units"]
    assert (fate.fee_units, len(fate.outputs)) == (fee, 3)
    assert {each.address: each.units for each in fate.movements} == {
        RECIPIENTS[2]: 20_000_000, RECIPIENTS[3]: 15_000_000, WALLET.address: -35_000_000 - fee,
    }  # fmt: skip


def test_a_spend_that_the_scan_has_not_seen_waits(pair: World) -> None:
    pair.fund(COIN)
    draft, attempt, _ = included(pair)

    assert pair.fate(draft, attempt, seen={}).kind is FateKind.WAITING


def test_one_provider_alone_includes_without_a_witness_and_buries_nothing(pair: World) -> None:
    pair.fund(COIN)
    draft, attempt, height = included(pair)
    pair.providers[1].failure = HTML
    assert not pair.fate(draft, attempt, seen={attempt.txid: height}).is_witnessed

    pair.providers[1].failure = None
    pair.coins = pair.fund(COIN)
    draft, attempt, thief, height = robbed(pair)
    pair.node.mine(3)
    pair.providers[1].failure = DOWN
    with pytest.raises(ProviderError, match="one provider alone"):
        pair.fate(draft, attempt, seen={thief: height})


def test_a_provider_that_lags_says_nothing(pair: World) -> None:
    pair.fund(COIN)
    draft, attempt, height = included(pair)
    case = pair.case(draft, attempt, seen={attempt.txid: height})
    for peer in pair.providers:
        peer.lies["getblockhash"] = lambda truth, params: BEYOND if params[0] >= height else truth
    with pytest.raises(ProviderError, match="not there yet"):
        pair.spender.fate(case)

    pair.providers[0].lies.clear()
    fate = pair.spender.fate(case)
    assert (fate.kind, fate.is_witnessed) == (FateKind.INCLUDED, False)


def test_a_provider_on_a_fork_is_outvoted_and_two_chains_of_two_leave_the_fate_unknown(trio: World) -> None:
    trio.fund(COIN)
    draft, attempt, height = included(trio)
    ours = trio.node.ask("getblockhash", height)
    case = trio.case(draft, attempt, seen={attempt.txid: height})
    trio.node.reorg(1)
    fork = trio.node.ask("getblockhash", height)
    document = {0: ours, 1: ours, 2: fork}
    for number, peer in enumerate(trio.providers):
        peer.lies["getblockhash"] = partial(at_height, height, document[number])
    fate = trio.spender.fate(case)
    assert (fate.kind, fate.block_hash, fate.is_witnessed) == (FateKind.INCLUDED, ours, True)

    trio.providers[0].failure = HTML
    with pytest.raises(ProviderError, match="disagree"):
        trio.spender.fate(case)
    trio.providers[1].failure = HTML
    assert trio.spender.fate(case).kind is FateKind.WAITING


def test_an_invalid_block_proves_nothing(alone: World) -> None:
    alone.fund(COIN)
    draft, attempt, height = included(alone)
    case = alone.case(draft, attempt, seen={attempt.txid: height})
    other = alone.node.ask("getblock", alone.node.ask("getblockhash", height - 1), 0)
    for lie in (other, "00", "zz", 7):
        alone.providers[0].lies["getblock"] = lie
        with pytest.raises(ProviderError):
            alone.spender.fate(case)


def test_a_block_is_read_once_and_a_reorg_takes_its_inclusion_back(alone: World) -> None:
    alone.fund(COIN)
    draft, attempt, height = included(alone)
    case = alone.case(draft, attempt, seen={attempt.txid: height})
    assert alone.spender.fate(case).kind is FateKind.INCLUDED
    alone.providers[0].lies["getblock"] = Refusal(-1, "asked twice")
    assert alone.spender.fate(case).kind is FateKind.INCLUDED
    alone.providers[0].lies.clear()
    alone.node.reorg(1)

    assert alone.spender.fate(case).kind is FateKind.WAITING


@pytest.mark.parametrize(("blocks", "kind"), [(1, FateKind.WAITING), (2, FateKind.DEAD)])
def test_a_spend_dies_when_a_strangers_transaction_has_its_coin_deeply_enough(
    pair: World, blocks: int, kind: FateKind
) -> None:
    pair.fund(COIN)
    draft, attempt, thief, height = robbed(pair)
    pair.node.mine(blocks)
    fate = pair.fate(draft, attempt, seen={thief: height}, depth=3)

    assert (fate.kind, fate.cause) == (kind, "claim_used" if kind is FateKind.DEAD else "")
    assert pair.spender.send(attempt.raw) is Sending.CLAIM_USED


def test_a_node_that_does_not_show_the_strangers_transaction_keeps_a_spend_alive(trio: World) -> None:
    trio.fund(COIN)
    draft, attempt, thief, height = robbed(trio)
    trio.node.mine(3)
    trio.providers[2].lies["getblockcount"] = height
    assert trio.fate(draft, attempt, seen={thief: height}).kind is FateKind.WAITING

    trio.providers[2].failure = HTML
    assert trio.fate(draft, attempt, seen={thief: height}).kind is FateKind.DEAD


def test_a_transaction_with_other_coins_than_its_rows_is_not_believed(alone: World) -> None:
    alone.fund(COIN, COIN)
    draft = alone.draft(intent(150_000_000))
    attempt = alone.sign(draft)
    alone.spender.send(attempt.raw)
    case = alone.case(draft, attempt, seen={attempt.txid: alone.node.mine()})
    assert isinstance(case.claim, Coins)

    with pytest.raises(ProviderError, match="does not hold"):
        alone.spender.fate(replace(case, claim=Coins(coins=case.claim.coins[:1])))
    with pytest.raises(ValueError, match="spends coins"):
        alone.spender.fate(replace(case, claim=Window(reference="")))
