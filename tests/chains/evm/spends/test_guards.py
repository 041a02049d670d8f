"""One provider alone cannot make the signer use a wrong slot, or believe that bytes were sent."""

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pytest

from chains.base import ProviderError
from chains.evm.spends.fate import NO_TRANSFER, judge
from chains.spending import Fate, FateKind, InsufficientCoinError, OutputFate, SpendRefusedError
from tests.chains.conftest import THEIRS
from tests.chains.evm.spends.world import HOT, REVERT_CODE, World
from tests.peers.json_rpc_node import Refusal
from tests.peers.lying_rpc import DOWN

FAR = hex(10**6)
NEAR = hex(5)


# The next slot ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("liar", [0, 1])
@pytest.mark.parametrize("lie", [FAR, NEAR])
def test_one_of_two_does_not_raise_the_next_slot(pair: World, liar: int, lie: str) -> None:
    """A transaction with that slot could not be included until all slots before it are used."""
    pair.include(pair.sign(pair.intent(1)))
    pair.providers[liar].lies["eth_getTransactionCount"] = lie

    assert pair.spender.next_counter(HOT, ours=1) == 1


@pytest.mark.parametrize("lie", [FAR, "0x0"])
def test_one_of_three_does_not_move_the_next_slot(trio: World, lie: str) -> None:
    trio.include(trio.sign(trio.intent(1)))
    trio.providers[1].lies["eth_getTransactionCount"] = lie

    assert trio.spender.next_counter(HOT, ours=0) == 1


def test_a_slot_beyond_our_own_count_takes_two_providers(pair: World) -> None:
    pair.include(pair.sign(pair.intent(1)))
    assert pair.spender.next_counter(HOT, ours=0) == 1

    pair.providers[1].failure = DOWN
    with pytest.raises(ProviderError, match="alone"):
        pair.spender.next_counter(HOT, ours=0)
    assert pair.spender.next_counter(HOT, ours=1) == 1, "what we used ourselves is no news"


def test_a_single_provider_decides_the_next_slot(alone: World) -> None:
    alone.include(alone.sign(alone.intent(1)))

    assert alone.spender.next_counter(HOT, ours=0) == 1


# Sending ----------------------------------------------------------------------------------------------------


def test_a_node_that_does_not_know_a_kind_of_transaction_has_not_taken_it(alone: World) -> None:
    alone.providers[0].lies["eth_sendRawTransaction"] = Refusal(-32000, "Unknown transaction type: 2")

    with pytest.raises(ProviderError):
        alone.spender.send(b"\x02")


# The effect -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda _log: {"removed": True},
        lambda _log: {"address": THEIRS},
        lambda log: {"topics": ["0x" + "ee" * 32, *log["topics"][1:]]},
        lambda log: {"topics": [*log["topics"], "0x" + "00" * 32]},
    ],
    ids=["removed by a reorg", "another token", "another event", "an NFT"],
)
def test_a_lookalike_of_the_transfer_does_not_count(alone: World, change: Callable[[Any], dict[str, Any]]) -> None:
    intent = alone.intent(77)
    attempt = alone.sign(intent)
    alone.include(attempt)
    alone.providers[0].lies["eth_getTransactionReceipt"] = lambda truth, _: (
        truth | {"logs": [log | change(log) for log in truth["logs"]]}
    )

    assert [output.problem for output in alone.fate(intent, attempt).outputs] == [NO_TRANSFER]


def test_a_receipt_without_a_block_is_no_inclusion(alone: World) -> None:
    """Some nodes give one for what waits in their pool."""
    intent = alone.intent(77)
    attempt = alone.sign(intent)
    alone.include(attempt)
    alone.providers[0].lies["eth_getTransactionReceipt"] = lambda truth, _: truth | {"blockNumber": None}

    assert alone.fate(intent, attempt).kind is FateKind.WAITING


# Trials -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["gas required exceeds allowance (0)", "execution reverted: transfer amount"])
def test_a_shortage_of_coin_is_not_the_payouts_fault_in_any_wording(alone: World, text: str) -> None:
    """Nodes call it so where there is nothing to pay the gas with; taken for a refusal it would fail the payout."""
    alone.node.ask("anvil_setBalance", HOT, "0x0")
    alone.providers[0].lies["eth_estimateGas"] = Refusal(-32000, text)

    with pytest.raises(InsufficientCoinError):
        alone.quote(alone.intent(5))


@pytest.mark.parametrize("lie", [{"eth_getBalance": "0x0"}, {"eth_call": f"0x{0:064x}"}], ids=["coin", "tokens"])
@pytest.mark.parametrize("liar", [0, 1])
def test_a_spend_that_one_of_two_finds_short_is_not_sent(pair: World, liar: int, lie: dict[str, str]) -> None:
    pair.providers[liar].lies |= lie

    with pytest.raises(InsufficientCoinError):
        pair.quote(pair.intent(5))


def test_a_balance_that_one_of_two_invents_pays_for_nothing(pair: World) -> None:
    fee = pair.quote(pair.intent(5))
    pair.node.ask("anvil_setBalance", HOT, hex(fee.ceiling_units - 1))
    pair.providers[0].lies["eth_getBalance"] = hex(10**20)

    with pytest.raises(InsufficientCoinError):
        pair.quote(pair.intent(5))


@pytest.mark.parametrize("gas", [0, 1, 20_999])
def test_gas_with_which_nothing_can_be_included_is_not_signed(alone: World, gas: int) -> None:
    """It would hold up its slot, and all behind it, for ever."""
    alone.providers[0].lies["eth_estimateGas"] = hex(gas)

    with pytest.raises(ProviderError):
        alone.quote(alone.intent(5))


def test_a_node_that_fails_has_refused_nothing(alone: World) -> None:
    """A payout that is refused for long enough is given back."""
    alone.providers[0].lies["eth_estimateGas"] = Refusal(-32000, "header not found")

    with pytest.raises(ProviderError, match="header not found"):
        alone.quote(alone.intent(5))


def test_a_revert_without_words_is_a_refusal(alone: World) -> None:
    alone.providers[0].lies["eth_estimateGas"] = Refusal(REVERT_CODE, "0x")

    with pytest.raises(SpendRefusedError):
        alone.quote(alone.intent(5))


# Verdicts ---------------------------------------------------------------------------------------------------

WAITING, DEAD = Fate(kind=FateKind.WAITING), Fate(kind=FateKind.DEAD, cause="claim_used")
PAID, FAILED, ELSEWHERE, OTHER, *_ = UNLIKE = (
    Fate(
        kind=FateKind.INCLUDED, txid=txid, height=height, block_hash=f"0x{height}", outputs=(OutputFate(effect=effect),)
    )  # type: ignore[arg-type]
    for txid, height, effect in (
        ("0x1", 7, "exact"),
        ("0x1", 7, "none"),
        ("0x1", 8, "exact"),
        ("0x2", 7, "exact"),
        ("0x1", 7, "other"),
    )
)
FATES = (WAITING, DEAD, *UNLIKE)


def verdict(fates: Sequence[Fate], providers: int) -> Fate | None:
    """Return what is believed; None where nothing is."""
    try:
        return judge(fates, providers, is_fee_one=True)
    except ProviderError:
        return None


@pytest.mark.parametrize("truth", FATES, ids=lambda fate: f"{fate.kind.value} {fate.txid} {fate.height}")
def test_one_liar_alone_is_never_believed(truth: Fate) -> None:
    """With two providers, and with three of which one more lags; for every answer in every order."""
    for lie in FATES:
        for honest, providers in (((truth,), 2), ((truth, truth), 3), ((truth, WAITING), 3), ((truth,), 3)):
            for order in permutations((*honest, lie)):
                assert verdict(order, providers) in {None, WAITING, *honest}, (order, providers)


@pytest.mark.parametrize("providers", [2, 3])
def test_a_provider_that_is_left_alone_gives_no_money_back(providers: int) -> None:
    assert [verdict([fate], providers) for fate in (DEAD, FAILED)] == [None, None]
    assert [verdict([fate], 1) for fate in (DEAD, FAILED)] == [DEAD, FAILED], "the only one there is has to be believed"
