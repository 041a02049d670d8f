"""The fate of a transfer: each node reports it alone, and a required number of nodes has to agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chains.base import ContradictionError, ProviderError
from chains.solana import programs
from chains.solana.spends import history
from chains.spending import Attempt, Counter, Draft, FateKind, Window
from tests.chains.solana.spends.world import (
    HOT_KEY,
    KEYRING,
    PLAIN,
    SILENT,
    THEIRS,
    USDT_PAIR,
    World,
    case,
    payment,
    providers_of,
    world,
)
from tests.peers.solana.chain import BUYER

UNITS = 1_000_000


def last_block(draft: Draft) -> int:
    assert isinstance(draft.claim, Window)
    assert draft.claim.last_block is not None
    return draft.claim.last_block


def expired(chain: World) -> tuple[Draft, Attempt]:
    """Sign a payout that is never sent and whose window is over, with a stranger's transaction in each block."""
    draft, attempt = chain.signed(payment(UNITS))
    for _ in range(155):
        chain.solana.send(chain.solana.transfer(BUYER.address, 1))
        chain.solana.mine()
    return draft, attempt


def nothing(truth: Any, _params: list[Any]) -> Any:
    return truth | {"value": [None for _ in truth["value"]]}


def unknown(attempt: Attempt) -> Any:
    """Let a node deny one transaction alone."""

    def lie(truth: Any, params: list[Any]) -> Any:
        value = [None if one == attempt.txid else known for one, known in zip(params[0], truth["value"], strict=True)]
        return truth | {"value": value}

    return lie


def test_it_may_come_in_until_the_final_chain_is_past_its_last_block(chain: World) -> None:
    draft, attempt = chain.signed(payment(UNITS))
    chain.solana.mine(last_block(draft) - chain.solana.chain.blocks[-2].height)
    assert chain.solana.chain.blocks[-2].height == last_block(draft)

    assert chain.spender.fate(case(draft, attempt)).kind is FateKind.WAITING
    chain.solana.mine()
    fate = chain.spender.fate(case(draft, attempt))
    assert (fate.kind, fate.cause) == (FateKind.DEAD, "expired")


def test_it_is_waiting_until_the_last_window_of_all_attempts_is_over(chain: World) -> None:
    draft, attempt = expired(chain)
    asked = case(draft, attempt)
    windows = (Window(reference="", last_block=last_block(draft) + 500), Window(reference="", last_block=1))

    assert chain.spender.fate(asked).kind is FateKind.DEAD
    assert chain.spender.fate(replace(asked, windows=windows)).kind is FateKind.WAITING
    for claim in (Counter(at_least=1), Window(reference="")):
        with pytest.raises(ValueError, match="expires"):
            chain.spender.fate(replace(asked, claim=claim))


def test_a_spend_included_in_time_is_never_dead(chain: World) -> None:
    draft, attempt = chain.paid(payment(UNITS))
    chain.solana.mine(200)

    assert chain.spender.fate(case(draft, attempt)).is_success


def test_expired_for_one_node_and_included(chain: World) -> None:
    draft, attempt = chain.paid(payment(UNITS))
    chain.outlive()

    with providers_of(chain, 2, getSignatureStatuses=unknown(attempt)) as (both, nodes):
        assert both.spender.fate(case(draft, attempt)).kind is FateKind.WAITING
        # The other one does not answer: one that denies wrongly releases nothing.
        lonely = world(chain.solana, [SILENT, nodes[-1].url])
        with pytest.raises(ProviderError):
            lonely.spender.fate(case(draft, attempt))
    with providers_of(chain, 3, getSignatureStatuses=unknown(attempt)) as (three, _):
        assert three.spender.fate(case(draft, attempt)).is_success


def test_a_block_that_shows_it_outweighs_the_denial_of_its_own_node(chain: World) -> None:
    draft, attempt = chain.signed(payment(UNITS))
    # In the first block of those that the node is asked to show.
    chain.solana.mine(last_block(draft) - history.BACK[1] - chain.solana.chain.head.height - 1)
    chain.solana.send(attempt.raw)
    chain.solana.mine(100)

    with (
        providers_of(chain, 1, getSignatureStatuses=unknown(attempt)) as (one, _),
        pytest.raises(ProviderError, match="does not know"),
    ):
        one.spender.fate(case(draft, attempt))


def test_death_takes_every_provider(chain: World) -> None:
    draft, attempt = expired(chain)

    with providers_of(chain, 3) as (all_three, nodes):
        assert all_three.spender.fate(case(draft, attempt)).kind is FateKind.DEAD
        silent = world(chain.solana, [nodes[0].url, nodes[1].url, SILENT])
        with pytest.raises(ProviderError, match="not every provider"):
            silent.spender.fate(case(draft, attempt))
        nodes[-1].lag(50)
        assert all_three.spender.fate(case(draft, attempt)).kind is FateKind.WAITING


@pytest.mark.parametrize("code", [-32001, -32004, -32007, -32009])
def test_a_node_without_the_blocks_of_the_window_proves_nothing(chain: World, code: int) -> None:
    draft, attempt = expired(chain)
    first = chain.solana.chain.blocks[-100].slot

    with providers_of(chain, 2) as (both, nodes):
        nodes[-1].prune(first, code)
        with pytest.raises(ProviderError, match="not every provider"):
            both.spender.fate(case(draft, attempt))


def test_a_node_that_keeps_no_list_of_transactions_proves_nothing(chain: World) -> None:
    draft, attempt = expired(chain)

    with (
        providers_of(chain, 1, getSignatureStatuses=nothing) as (one, _),
        pytest.raises(ProviderError, match="of its own blocks"),
    ):
        one.spender.fate(case(draft, attempt))


def test_blocks_that_do_not_count_up_prove_nothing(chain: World) -> None:
    draft, attempt = expired(chain)

    def low(truth: Any, _params: list[Any]) -> Any:
        return truth | {"blockHeight": 7}

    for lie in (low, lambda truth, _params: truth | {"blockHeight": None}):
        with (
            providers_of(chain, 1, getBlock=lie) as (one, _),
            pytest.raises(ProviderError, match="does not show the blocks"),
        ):
            one.spender.fate(case(draft, attempt))
    with (
        providers_of(chain, 1, getBlocks=lambda _truth, _params: []) as (one, _),
        pytest.raises(ProviderError, match="does not keep the blocks"),
    ):
        one.spender.fate(case(draft, attempt))


def test_a_window_among_skipped_slots_is_found_after_a_long_while(chain: World) -> None:
    draft, attempt = chain.signed(payment(UNITS))
    for gap in [40] * 30 + [1_500, 30_000] + [40] * 30:
        chain.solana.mine(3)
        chain.solana.chain.skip(gap)
    chain.solana.mine(20)
    fates = [chain.spender.fate(case(draft, attempt)).kind]
    # More blocks above it than are listed at once.
    for _ in range(2_500):
        chain.solana.mine()

    fates.append(chain.spender.fate(case(draft, attempt)).kind)
    assert fates == [FateKind.DEAD] * 2


def test_expired_while_frozen(chain: World) -> None:
    # Nothing was sent for hours; the same bytes are dead, and a new spend takes their place once.
    draft, attempt = chain.signed(payment(UNITS, pair=USDT_PAIR))
    chain.solana.chain.advance(7_200)
    chain.outlive()

    assert chain.spender.fate(case(draft, attempt)).kind is FateKind.DEAD
    again = chain.paid(payment(UNITS, pair=USDT_PAIR))
    chain.spender.send(attempt.raw)
    chain.solana.settle()
    assert chain.spender.fate(case(*again)).is_success
    assert chain.spender.fate(case(draft, attempt)).kind is FateKind.DEAD
    assert chain.solana.token_balance(THEIRS) == UNITS


def test_that_it_had_no_effect_takes_two(chain: World) -> None:
    draft, attempt = chain.paid(payment(UNITS))

    def failed(truth: Any, _params: list[Any]) -> Any:
        return truth and truth | {"meta": truth["meta"] | {"err": {"InstructionError": [3, {"Custom": 1}]}}}

    with providers_of(chain, 2, getTransaction=failed) as (both, nodes):
        with pytest.raises(ProviderError, match="disagree"):
            both.spender.fate(case(draft, attempt))
        lonely = world(chain.solana, [SILENT, nodes[-1].url])
        with pytest.raises(ProviderError, match="one provider alone"):
            lonely.spender.fate(case(draft, attempt))
        nodes[0].lies |= nodes[-1].lies
        fate = both.spender.fate(case(draft, attempt))
    assert [(each.effect, each.problem) for each in fate.outputs] == [("none", "the wallet held too little")]


def test_one_of_two_is_believed_that_it_arrived_without_a_witness(chain: World) -> None:
    draft, attempt = chain.paid(payment(UNITS))

    with providers_of(chain, 1) as (_, nodes):
        fate = world(chain.solana, [nodes[0].url, SILENT]).spender.fate(case(draft, attempt))
    assert (fate.is_success, fate.is_witnessed) == (True, False)


def broken(**changes: Any) -> Any:
    def lie(truth: Any, _params: list[Any]) -> Any:
        return truth and truth | {"meta": truth["meta"] | changes}

    return lie


@pytest.mark.parametrize(
    "lie",
    [
        broken(fee=1),
        broken(fee=-5),
        broken(preBalances=[], postBalances=[]),
        broken(postBalances=[1, 2, 3, 4]),
        broken(loadedAddresses={"writable": [THEIRS], "readonly": []}),
        broken(preTokenBalances=[{"accountIndex": 99, "mint": "", "uiTokenAmount": {"amount": "5"}}]),
        broken(preTokenBalances=[{"accountIndex": 0, "mint": "", "uiTokenAmount": {"amount": "5"}} for _ in range(2)]),
        *(
            broken(
                postTokenBalances=[
                    {
                        "accountIndex": 0,
                        "mint": str(USDT_PAIR.contract),
                        "owner": THEIRS,
                        "programId": programs.TOKEN,
                        "uiTokenAmount": {"amount": amount},
                    }
                ]
            )
            for amount in ("-5", "x", "")
        ),
        lambda truth, _params: truth | {"meta": None},
    ],
)
def test_an_effect_that_cannot_be_is_no_answer(chain: World, lie: Any) -> None:
    draft, attempt = chain.paid(payment(UNITS))

    with providers_of(chain, 1, getTransaction=lie) as (one, _), pytest.raises(ProviderError):
        one.spender.fate(case(draft, attempt))


def test_another_transaction_than_the_one_asked_for_is_no_answer(chain: World) -> None:
    draft, attempt = chain.paid(payment(UNITS))
    _, other = chain.paid(payment(UNITS))
    shown = chain.solana.ask(
        "getTransaction", other.txid, {"encoding": "base64", "maxSupportedTransactionVersion": 255}
    )

    with (
        providers_of(chain, 1, getTransaction=shown) as (one, _),
        pytest.raises(ContradictionError, match="another transaction"),
    ):
        one.spender.fate(case(draft, attempt))
    with (
        providers_of(chain, 1, getTransaction=lambda _truth, _params: None) as (one, _),
        pytest.raises(ProviderError, match="does not show it"),
    ):
        one.spender.fate(case(draft, attempt))
    with (
        providers_of(chain, 1, getSignatureStatuses=lambda truth, _params: truth | {"value": []}) as (one, _),
        pytest.raises(ContradictionError, match="other transactions"),
    ):
        one.spender.fate(case(draft, attempt))


def test_two_attempts_in_blocks_are_a_contradiction(chain: World) -> None:
    first, second = (chain.paid(payment(UNITS)) for _ in range(2))

    with pytest.raises(ProviderError, match="two transactions of one spend"):
        chain.spender.fate(case(first[0], first[1], second[1]))


def test_another_sum_than_the_ordered_one_is_reported(chain: World) -> None:
    draft, attempt = chain.paid(payment(UNITS))
    other = replace(draft, intent=payment(UNITS + 5))
    elsewhere = replace(draft, intent=payment(UNITS, to=BUYER.address))
    token = replace(draft, intent=payment(UNITS, pair=USDT_PAIR))

    [more] = chain.spender.fate(case(other, attempt)).outputs
    assert (more.effect, more.left_units, more.arrived_units) == ("other", UNITS, UNITS)
    [lost] = chain.spender.fate(case(elsewhere, attempt)).outputs
    assert (lost.effect, lost.left_units, lost.arrived_units) == ("other", UNITS, 0)
    [none] = chain.spender.fate(case(token, attempt)).outputs
    assert none.effect == "none"
    assert HOT_KEY.address != BUYER.address


def test_a_status_of_a_block_that_is_not_final_waits(chain: World) -> None:
    draft, attempt = chain.signed(payment(PLAIN))
    chain.spender.send(attempt.raw)
    chain.solana.mine()

    assert chain.spender.fate(case(draft, attempt)).kind is FateKind.WAITING


def test_a_window_that_a_lone_late_provider_named_too_short_lets_nothing_die(chain: World) -> None:
    """It names a fresh blockhash, with numbers of blocks a hundred late, while our scan is as late."""
    chain.solana.mine(100)
    lies: dict[str, Any] = {
        "getBlockHeight": lambda truth, _params: truth - 100,
        "getLatestBlockhash": lambda truth, _params: (
            truth | {"value": truth["value"] | {"lastValidBlockHeight": truth["value"]["lastValidBlockHeight"] - 100}}
        ),
    }
    with providers_of(chain, 1, **lies) as (_, liars):
        lonely = world(chain.solana, [SILENT, liars[0].url])
        draft = lonely.drafted(payment(UNITS), scanned=chain.scanned(behind=100))
    attempt = chain.spender.sign(draft, counter=None, keys=KEYRING)
    for _ in range(last_block(draft) - chain.solana.chain.head.height + 3):
        chain.solana.send(chain.solana.transfer(BUYER.address, 1))
        chain.solana.mine()

    assert chain.spender.fate(case(draft, attempt)).kind is FateKind.WAITING
    chain.solana.send(attempt.raw)
    chain.solana.settle()
    assert chain.spender.fate(case(draft, attempt)).is_success


def test_a_blockhash_that_only_the_newest_block_knows_is_taken(chain: World) -> None:
    draft, attempt = expired(chain)
    newest = replace(case(draft, attempt), raws=(chain.solana.transfer(BUYER.address, 1),))

    assert chain.spender.fate(case(draft, attempt)).kind is FateKind.DEAD
    assert chain.spender.fate(newest).kind is FateKind.WAITING


@pytest.mark.parametrize("lie", ["\0", "x" * 32, "1" * 100])
def test_the_hash_of_an_inclusion_is_one(chain: World, lie: str) -> None:
    draft, attempt = chain.paid(payment(UNITS))

    with (
        providers_of(chain, 1, getBlock=lambda truth, _params: truth | {"blockhash": lie}) as (one, _),
        pytest.raises(ProviderError, match="not 32 bytes"),
    ):
        one.spender.fate(case(draft, attempt))


@pytest.mark.parametrize(
    "change", [{"owner": "a\0b"}, *({"uiTokenAmount": {"amount": digits}} for digits in ("9" * 5_000, "\u0665"))]
)
def test_a_balance_that_cannot_be_is_no_effect(chain: World, change: dict[str, Any]) -> None:
    draft, attempt = chain.paid(payment(5, pair=USDT_PAIR))

    def lie(truth: Any, _params: list[Any]) -> Any:
        for each in truth["meta"]["postTokenBalances"]:
            each.update(change)
        return truth

    with (
        providers_of(chain, 1, getTransaction=lie) as (one, _),
        pytest.raises(ProviderError, match=r"not (an amount|32 bytes)"),
    ):
        one.spender.fate(case(draft, attempt))
