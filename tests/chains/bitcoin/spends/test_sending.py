"""How answers of a real bitcoind to transactions are read; a table has answers that it cannot be made to give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chains.base import ProviderError
from chains.bitcoin.transactions import read
from chains.spending import Draft, Sending
from tests.chains.bitcoin.spends.samples import COIN, WALLET, coin, intent
from tests.chains.bitcoin.spends.world import World
from tests.peers.json_rpc_node import Refusal
from tests.peers.lying_rpc import DOWN


def at_fee(world: World, draft: Draft, fee_units: int) -> bytes:
    """Return bytes that offer another fee, whatever the spender thinks of it."""
    terms = {"fee_units": fee_units, "change_units": COIN - draft.intent.units - fee_units}
    offer = replace(draft.offer, ceiling_units=fee_units, terms={**draft.offer.terms, **terms})
    return world.sign(replace(draft, offer=offer)).raw


def locked(world: World, draft: Draft, height: int) -> bytes:
    terms = {**draft.offer.terms, "lock_height": height}
    return world.sign(replace(draft, offer=replace(draft.offer, terms=terms))).raw


def test_a_transaction_sent_twice_or_in_a_block_counts_as_taken(alone: World) -> None:
    alone.fund(COIN)
    raw = alone.sign(alone.draft(intent(1_000_000))).raw

    assert [alone.spender.send(raw) for _ in range(2)] == [Sending.TAKEN] * 2
    alone.node.mine()
    assert alone.spender.send(raw) is Sending.TAKEN


def test_too_low_an_offer_differs_from_a_taken_one(alone: World) -> None:
    alone.fund(COIN)
    draft = alone.draft(intent(1_000_000))

    assert alone.spender.send(at_fee(alone, draft, 50)) is Sending.UNDERPRICED  # min relay fee not met
    assert alone.spender.send(at_fee(alone, draft, 5_000)) is Sending.TAKEN
    assert alone.spender.send(at_fee(alone, draft, 5_010)) is Sending.UNDERPRICED  # insufficient fee
    assert alone.spender.send(at_fee(alone, draft, 4_000)) is Sending.UNDERPRICED


def test_a_transaction_with_a_spent_coin_has_its_claim_used(alone: World) -> None:
    alone.fund(COIN)
    mine, other = alone.draft(intent(1_000_000)), alone.sign(alone.draft(intent(2_000_000)))
    alone.include(other.raw)

    assert alone.spender.send(alone.sign(mine).raw) is Sending.CLAIM_USED


def test_a_refusal_for_our_own_fault_is_no_outcome(alone: World) -> None:
    alone.fund(COIN)
    draft = alone.draft(intent(1_000_000))
    good = read(alone.sign(draft).raw)
    [spent] = good.inputs
    forged = replace(good, inputs=(replace(spent, witness=(spent.witness[0][:-9] + bytes(9), spent.witness[1])),))
    faults = {
        "non-final": locked(alone, draft, alone.node.height() + 1),
        "script-verify-flag": forged.raw,
        # Some three thousand satoshi for a virtual byte, which a node would take by itself.
        "exceeds maximum": at_fee(alone, draft, 1_200_000),
        "decode failed": good.base[:-4],
        "dust": replace(good, outputs=(replace(good.outputs[0], units=1), *good.outputs[1:])).raw,
    }

    for problem, raw in list(faults.items())[:3]:
        with pytest.raises(ProviderError, match=f"(?i){problem}"):
            alone.spender.send(raw)
    with pytest.raises(ProviderError, match="cut short"):
        alone.spender.send(faults["decode failed"])
    with pytest.raises(ProviderError, match=r"dust|script-verify"):
        alone.spender.send(faults["dust"])


def test_a_reward_that_is_too_young_is_not_sent_for_good(alone: World) -> None:
    alone.node.ask("generatetoaddress", 1, WALLET.address)
    block = alone.node.ask("getblock", alone.node.ask("getbestblockhash"), 2)
    reward = replace(coin(0, round(block["tx"][0]["vout"][0]["value"] * COIN)), txid=block["tx"][0]["txid"], vout=0)
    alone.coins = [reward]
    raw = alone.sign(alone.draft(intent(1_000_000))).raw

    with pytest.raises(ProviderError, match="premature"):
        alone.spender.send(raw)
    alone.node.mine(99)
    assert alone.spender.send(raw) is Sending.TAKEN


TEXTS = {
    Sending.TAKEN: [
        (-27, "Transaction outputs already in utxo set"), (-27, "in a version's own words"),
        (-26, "txn-already-in-mempool"), (-26, "txn-already-known"), (-26, "txn-same-nonwitness-data-in-mempool"),
    ],
    Sending.CLAIM_USED: [(-25, "bad-txns-inputs-missingorspent"), (-25, "Missing inputs")],
    Sending.UNDERPRICED: [
        (-26, "txn-mempool-conflict"), (-26, "mempool min fee not met, 110 < 1000"), (-26, "mempool full"),
        (-26, "insufficient fee, rejecting replacement 00; new feerate 1 <= old feerate 2"),
        (-26, "replacement-failed, insufficient feerate: does not improve feerate diagram"),
    ],
}  # fmt: skip
NO_OUTCOMES = ["too-long-mempool-chain", "bad-txns-in-belowout", "tx-size", "", "anything else"]


def test_every_known_answer_has_its_meaning_and_another_is_no_outcome(alone: World) -> None:
    alone.fund(COIN)
    raw, lies = alone.sign(alone.draft(intent(1_000_000))).raw, alone.providers[0].lies
    for sending, written in TEXTS.items():
        for code, text in written:
            lies["sendrawtransaction"] = Refusal(code, text)
            assert (text, alone.spender.send(raw)) == (text, sending)

    for text in NO_OUTCOMES:
        lies["sendrawtransaction"] = Refusal(-26, text)
        with pytest.raises(ProviderError):
            alone.spender.send(raw)


def test_taken_by_one_is_taken_and_anothers_id_is_no_answer(pair: World) -> None:
    pair.fund(COIN)
    raw = pair.sign(pair.draft(intent(1_000_000))).raw
    pair.providers[0].lies["sendrawtransaction"] = Refusal(-26, "min relay fee not met")
    assert pair.spender.send(raw) is Sending.TAKEN
    assert len(pair.node.waiting()) == 1

    pair.providers[1].failure = DOWN
    assert pair.spender.send(raw) is Sending.UNDERPRICED
    pair.providers[0].lies["sendrawtransaction"] = "00" * 32
    with pytest.raises(ProviderError):
        pair.spender.send(raw)
