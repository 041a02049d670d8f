"""The fate of a spend, proved by one node's own chain, then by a majority of nodes. A lie decides nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from chains.base import UNITS_MAX, ProviderError
from chains.evm.spends.fate import NO_TRANSFER, OTHER_TRANSFER, OUT_OF_GAS, REVERTED, judge
from chains.evm.spends.terms import gas_offer
from chains.spending import Attempt, Fate, FateKind, Intent, KeyRef, Movement, Offer, Output, OutputFate
from tests.chains.conftest import OURS, THEIRS
from tests.chains.evm.spends.world import GWEI, HOT, HOT_KEY, World
from tests.peers.json_rpc_node import Refusal
from tests.peers.lying_rpc import DOWN

FEE = gas_offer(gas_limit=100_000, price_units=20 * GWEI, tip_units=GWEI)
WAITING = Fate(kind=FateKind.WAITING)
DEAD = Fate(kind=FateKind.DEAD, cause="claim_used")


def included(world: World, *, currency: str | None = "USDT", fee: Offer = FEE) -> tuple[Intent, Attempt]:
    intent = world.intent(77, currency=currency)
    attempt = world.sign(intent, offer=fee, slot=0)
    world.include(attempt)
    return intent, attempt


def overtaken(world: World, *, blocks: int) -> tuple[Intent, Attempt]:
    """Return a spend whose nonce another transaction of the same key took, this many blocks deep."""
    intent = world.intent(77)
    attempt = world.sign(intent, offer=FEE, slot=0)
    world.include(world.sign(world.intent(1, currency="ETH", to=THEIRS), offer=FEE, slot=0))
    for _ in range(blocks - 1):
        world.node.mine()
    return intent, attempt


def fail(truth: Any, _params: object) -> Any:
    return truth and truth | {"status": "0x0", "logs": []}


# Included -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("currency", ["USDT", "ETH"])
def test_an_included_spend_has_its_place_and_its_cost(alone: World, currency: str) -> None:
    intent, attempt = included(alone, currency=currency)
    receipt = alone.node.receipt(attempt.txid)
    cost = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    moved = (
        Movement(address=HOT, currency="ETH", units=-cost - 77 * (currency == "ETH")),
        *([Movement(address=HOT, currency="USDT", units=-77)] if currency == "USDT" else []),
        Movement(address=OURS, currency=currency, units=77),
    )

    assert alone.fate(intent, attempt) == Fate(
        kind=FateKind.INCLUDED,
        txid=attempt.txid,
        height=alone.node.height(),
        block_hash=receipt["blockHash"],
        outputs=(OutputFate(effect="exact"),),
        fee_units=cost,
        movements=moved,
    )


def test_a_token_that_returns_nothing_has_moved(alone: World) -> None:
    alone.token(code="token_no_return")
    intent, attempt = included(alone)

    assert alone.fate(intent, attempt).is_success


def effect_of(fate: Fate) -> tuple[str, int, int, str]:
    [output] = fate.outputs
    return output.effect, output.left_units, output.arrived_units, output.problem


@pytest.mark.parametrize(
    ("code", "effect"),
    [("token_false", ("none", 0, 0, NO_TRANSFER)), ("token_fee", ("other", 1_000, 990, OTHER_TRANSFER))],
    ids=["nothing", "less"],
)
def test_a_token_that_moves_something_else_has_not_failed(
    alone: World, code: str, effect: tuple[str, int, int, str]
) -> None:
    alone.token(code=code)
    intent = alone.intent(1_000)
    attempt = alone.sign(intent, offer=FEE, slot=0)
    alone.include(attempt)

    assert effect_of(alone.fate(intent, attempt)) == effect


@pytest.mark.parametrize(
    ("change", "effect"),
    [
        ({"units": 78}, ("other", 77, 77, OTHER_TRANSFER)),
        ({"recipient": THEIRS}, ("other", 77, 0, OTHER_TRANSFER)),
        ({"sender": OURS}, ("none", 0, 0, NO_TRANSFER)),
    ],
)
def test_only_the_very_transfer_counts(alone: World, change: dict[str, Any], effect: tuple[str, int, int, str]) -> None:
    intent, attempt = included(alone)
    document = {"sender": HOT, "recipient": OURS, "units": 77} | change
    wallet = KeyRef(address=document["sender"], ordinal=None)
    other = Intent(
        wallet=wallet, pair=intent.pair, outputs=(Output(recipient=document["recipient"], units=document["units"]),)
    )

    assert effect_of(alone.fate(other, attempt)) == effect


def logged(sender: str, recipient: str, data: str) -> Callable[[Any], Any]:
    """Return a change of a receipt's logs: one more of the same token."""

    def change(logs: Any) -> Any:
        topics = [
            logs[0]["topics"][0],
            *("0x" + part.removeprefix("0x").rjust(64, "0") for part in (sender, recipient)),
        ]
        return [*logs, logs[0] | {"topics": topics, "data": data, "logIndex": "0x1"}]

    return change


ONE_MORE = "0x" + "1".rjust(64, "0")


@pytest.mark.parametrize(
    ("change", "effect"),
    [
        (logged(HOT, THEIRS, ONE_MORE), ("other", 78, 77, OTHER_TRANSFER)),
        (logged(HOT, OURS, ONE_MORE), ("other", 78, 78, OTHER_TRANSFER)),
        (logged(HOT, OURS, "0x"), ("other", 77, 77, OTHER_TRANSFER)),
        (logged(HOT, OURS, "0x" + "ff" * 32), ("other", UNITS_MAX, UNITS_MAX, OTHER_TRANSFER)),
        (logged(THEIRS, HOT, ONE_MORE), ("exact", 0, 0, "")),
        (lambda logs: [log | {"data": ONE_MORE * 1 + "00" * 32} for log in logs], ("other", 0, 0, OTHER_TRANSFER)),
    ],
    ids=["a fee on top", "twice", "an odd one", "absurd", "something came back", "too long a number"],
)
def test_more_than_the_one_transfer_from_us_is_another_effect(
    alone: World, change: Callable[[Any], Any], effect: tuple[str, int, int, str]
) -> None:
    intent, attempt = included(alone)
    alone.providers[0].lies["eth_getTransactionReceipt"] = lambda truth, _: truth | {"logs": change(truth["logs"])}

    assert effect_of(alone.fate(intent, attempt)) == effect


def test_one_provider_alone_does_not_declare_another_effect(pair: World) -> None:
    """It would stop the coin's payouts."""
    intent, attempt = included(pair)
    pair.providers[0].lies["eth_getTransactionReceipt"] = lambda truth, _: (
        truth | {"logs": logged(HOT, THEIRS, ONE_MORE)(truth["logs"])}
    )
    pair.providers[1].failure = DOWN

    with pytest.raises(ProviderError, match="alone"):
        pair.fate(intent, attempt)


def test_a_revert_costs_and_has_no_effect(alone: World) -> None:
    alone.token(units=76)
    intent, attempt = included(alone)
    fate = alone.fate(intent, attempt)

    assert (fate.kind, fate.is_success, effect_of(fate)[3]) == (FateKind.INCLUDED, False, REVERTED)
    assert fate.fee_units > 0


def test_running_out_of_gas_is_named(alone: World) -> None:
    intent, attempt = included(alone, fee=gas_offer(gas_limit=25_000, price_units=20 * GWEI, tip_units=GWEI))

    assert effect_of(alone.fate(intent, attempt))[3] == OUT_OF_GAS


def test_a_rollups_data_fee_is_part_of_the_cost(alone: World) -> None:
    intent, attempt = included(alone)
    before = alone.fate(intent, attempt).fee_units
    alone.providers[0].lies["eth_getTransactionReceipt"] = lambda truth, _: truth | {"l1Fee": hex(5 * GWEI)}

    assert alone.fate(intent, attempt).fee_units == before + 5 * GWEI


# Replacements and reorgs ------------------------------------------------------------------------------------


def test_waiting_until_it_is_included(alone: World) -> None:
    intent = alone.intent(77)
    attempt = alone.sign(intent)

    assert alone.fate(intent, attempt) == WAITING
    alone.spender.send(attempt.raw)
    assert alone.fate(intent, attempt) == WAITING
    alone.node.mine()
    assert alone.fate(intent, attempt).is_success


@pytest.mark.parametrize("winner", [0, 1], ids=["the original", "the replacement"])
def test_whichever_attempt_is_included_counts(alone: World, winner: int) -> None:
    intent = alone.intent(77)
    fee = alone.quote(intent)
    dearer = alone.dearer(intent, fee)
    attempts = [alone.sign(intent, offer=offer, slot=0) for offer in (fee, dearer)]
    alone.include(attempts[winner])

    assert alone.fate(intent, *attempts).txid == attempts[winner].txid
    assert alone.balance_at(OURS, intent.pair, alone.fate(intent, *attempts).block_hash) == 77


def test_a_reorg_takes_an_inclusion_back(alone: World) -> None:
    intent, attempt = included(alone)
    alone.node.mine()
    first = alone.fate(intent, attempt)

    alone.node.ask("anvil_reorg", 2, [])
    assert alone.fate(intent, attempt) == WAITING

    alone.node.ask("anvil_reorg", 1, [["0x" + attempt.raw.hex(), 0]])
    again = alone.fate(intent, attempt)
    assert again.is_success
    assert again.block_hash != first.block_hash


def test_a_receipt_of_a_block_that_the_node_itself_has_left_proves_nothing(alone: World) -> None:
    intent, attempt = included(alone)
    alone.providers[0].lies["eth_getTransactionReceipt"] = lambda truth, _: truth | {"blockHash": "0x" + "ee" * 32}

    assert alone.fate(intent, attempt) == WAITING


# Overtaken --------------------------------------------------------------------------------------------------


def test_overtaken_for_good_at_the_depth_asked_for_and_no_earlier(alone: World) -> None:
    intent, attempt = overtaken(alone, blocks=2)

    assert alone.fate(intent, attempt, depth=3) == WAITING
    alone.node.mine()
    assert alone.fate(intent, attempt, depth=3) == DEAD


def test_a_node_without_the_state_cannot_confirm(alone: World) -> None:
    intent, attempt = overtaken(alone, blocks=3)
    pruned = Refusal(-32000, "missing trie node")
    alone.providers[0].lies["eth_getTransactionCount"] = lambda truth, params: (
        truth if params[1] == "latest" else pruned
    )

    with pytest.raises(ProviderError):
        alone.fate(intent, attempt)


def test_one_provider_alone_does_not_declare_it_dead(pair: World) -> None:
    intent, attempt = overtaken(pair, blocks=3)
    pair.providers[1].failure = DOWN

    with pytest.raises(ProviderError, match="alone"):
        pair.fate(intent, attempt)


def test_one_provider_that_hides_our_receipt_does_not_make_it_dead(trio: World) -> None:
    intent, attempt = included(trio)
    trio.node.mine()
    trio.node.mine()
    for liar in trio.providers[:2]:
        liar.lies["eth_getTransactionReceipt"] = None

    assert trio.fate(intent, attempt) == WAITING


def test_a_provider_that_invents_a_used_slot_does_not_make_it_dead(pair: World) -> None:
    intent = pair.intent(77)
    attempt = pair.sign(intent, slot=0)
    pair.node.ask("anvil_mine", hex(5))
    pair.providers[0].lies["eth_getTransactionCount"] = "0x9"

    assert pair.fate(intent, attempt) == WAITING


def test_a_spend_included_between_two_queries_is_not_dead(alone: World) -> None:
    """The first look finds no receipt; the node's counter is already past the slot."""
    intent, attempt = included(alone)
    collected: list[object] = []

    def late(truth: object, _params: object) -> object:
        collected.append(truth)
        return truth if len(collected) > 1 else None

    alone.providers[0].lies["eth_getTransactionReceipt"] = late

    assert alone.fate(intent, attempt, depth=1).is_success


# RpcProviders at odds ------------------------------------------------------------------------------------------


def test_two_that_disagree_about_the_effect_decide_nothing(pair: World) -> None:
    intent, attempt = included(pair)
    pair.providers[0].lies["eth_getTransactionReceipt"] = fail

    with pytest.raises(ProviderError, match="disagree"):
        pair.fate(intent, attempt)


def test_two_of_three_outvote_a_liar(trio: World) -> None:
    intent, attempt = included(trio)
    trio.providers[0].lies["eth_getTransactionReceipt"] = fail

    assert trio.fate(intent, attempt).is_success


def test_one_provider_alone_does_not_declare_a_failure(pair: World) -> None:
    intent, attempt = included(pair)
    pair.providers[0].lies["eth_getTransactionReceipt"] = fail
    pair.providers[1].failure = DOWN

    with pytest.raises(ProviderError, match="alone"):
        pair.fate(intent, attempt)


def test_an_inclusion_that_one_of_two_invents_is_not_believed(pair: World) -> None:
    intent = pair.intent(77, currency="ETH")
    attempt = pair.sign(intent, slot=0)
    header = pair.node.ask("eth_getBlockByNumber", "latest", False)
    pair.providers[0].lies["eth_getTransactionReceipt"] = {
        "transactionHash": attempt.txid, "blockHash": header["hash"], "blockNumber": header["number"],
        "status": "0x1", "logs": [], "gasUsed": "0x5208", "effectiveGasPrice": "0x1",
    }  # fmt: skip

    assert pair.fate(intent, attempt) == WAITING


def test_a_lone_voice_among_those_that_answer_is_heard(pair: World) -> None:
    intent, attempt = included(pair)
    pair.providers[0].failure = DOWN

    assert pair.fate(intent, attempt).is_success


def test_two_attempts_of_one_slot_cannot_both_be_included(alone: World) -> None:
    intent, attempt = included(alone)
    other = alone.sign(intent, offer=gas_offer(gas_limit=90_000, price_units=20 * GWEI, tip_units=GWEI), slot=0)
    truth = alone.node.receipt(attempt.txid)
    alone.providers[0].lies["eth_getTransactionReceipt"] = lambda _, params: truth | {"transactionHash": params[0]}

    with pytest.raises(ProviderError, match="one nonce"):
        alone.fate(intent, attempt, other)


def test_a_receipt_of_another_transaction_is_refused(alone: World) -> None:
    intent, attempt = included(alone)
    truth = alone.node.receipt(attempt.txid)
    alone.providers[0].lies["eth_getTransactionReceipt"] = truth | {"transactionHash": "0x" + "dd" * 32}

    with pytest.raises(ProviderError, match="another transaction"):
        alone.fate(intent, attempt)


def test_the_most_frequent_cost_counts() -> None:
    costs = (7, 5, 5, 7)
    fates = [
        Fate(kind=FateKind.INCLUDED, txid="0x1", outputs=(OutputFate(effect="exact"),), fee_units=cost)
        for cost in costs
    ]

    # As many say either: one of them left out what a rollup adds.
    assert judge(fates, 4, is_fee_one=False).fee_units == 7
    assert judge(fates[:3], 3, is_fee_one=False).fee_units == 5


def test_a_cost_that_one_of_two_makes_up_is_not_booked(pair: World) -> None:
    """Once the spend is settled no provider is asked again, and the books would lack the cost for ever."""
    intent, attempt = included(pair)
    pair.providers[1].lies["eth_getTransactionReceipt"] = lambda truth, _: (
        truth and truth | {"effectiveGasPrice": hex(10**15)}
    )
    with pytest.raises(ProviderError, match="disagree"):
        pair.fate(intent, attempt)


def test_the_key_is_that_of_the_sender() -> None:
    from chains.evm.spends.library import account  # noqa: PLC0415 - slow to import

    assert account().from_key(HOT_KEY).address.lower() == HOT


def test_an_inclusion_shows_if_two_providers_have_seen_it(trio: World) -> None:
    intent, attempt = included(trio)
    for silent, is_witnessed in ((0, True), (1, True), (2, False)):
        for provider in trio.providers[:silent]:
            provider.failure = DOWN
        assert trio.fate(intent, attempt).is_witnessed is is_witnessed


def test_a_provider_alone_is_all_the_witnesses_there_are(alone: World) -> None:
    assert alone.fate(*included(alone)).is_witnessed
