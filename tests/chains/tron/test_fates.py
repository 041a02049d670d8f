"""The fate of a transfer: each node reports it alone, and a required number of nodes has to agree."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from chains.base import ProviderError
from chains.spending import Attempt, Draft, FateKind, Window
from chains.tron.wire import TRANSFER_TOPIC
from devstack.tron import wire
from tests.chains.tron.twists import SILENT, Twist, one_of, twisted, twisting
from tests.chains.tron.world import HOT_KEY, THEIRS, USDT_PAIR, World, case, payment, world
from tests.peers.tron.chain import BUYER, USDT

UNITS = 1_000


def paid(chain: World, *, is_token: bool = True) -> tuple[Draft, Attempt]:
    """Send a payout that the newest block includes."""
    draft, attempt = chain.signed(payment(UNITS, pair=USDT_PAIR if is_token else None))
    chain.spender.send(attempt.raw)
    chain.tron.mine()
    return draft, attempt


def ends_at(draft: Draft) -> datetime:
    assert isinstance(draft.claim, Window)
    assert draft.claim.ends_at is not None
    return draft.claim.ends_at


@pytest.mark.parametrize(("later_ms", "kind"), [(0, FateKind.WAITING), (1, FateKind.DEAD)])
def test_it_may_come_in_until_what_is_irreversible_is_past_its_end(chain: World, later_ms: int, kind: FateKind) -> None:
    draft, attempt = chain.signed(payment(1))
    end_ms = round(ends_at(draft).timestamp() * 1000)

    def late(liar: Any) -> Any:
        liar["block_header"]["raw_data"]["timestamp"] = end_ms + later_ms
        return liar

    with one_of(1, chain, "walletsolidity/getnowblock", late) as liar:
        assert liar.spender.fate(case(draft, attempt)).kind is kind


def test_what_is_irreversible_is_asked_for_once_more_when_the_clock_is_past_the_end(chain: World) -> None:
    draft, attempt = paid(chain)
    chain.tron.chain.advance(601)
    chain.tron.mine(6)

    with one_of(1, chain, "wallet/gettransactioninfobyid", lambda _answer: {}) as behind:
        assert behind.spender.fate(case(draft, attempt)).is_success


def test_one_of_two_is_believed_that_it_arrived_without_a_witness_and_not_that_it_did_not(chain: World) -> None:
    draft, attempt = paid(chain)

    with twisting(chain) as honest, twisting(chain, gettransactioninfobyid=_failed) as liar:
        alone, both = (world(chain.tron, [honest, other]) for other in (SILENT, chain.tron.url))
        fates = [each.spender.fate(case(draft, attempt)) for each in (alone, both)]
        assert [(fate.is_success, fate.is_witnessed) for fate in fates] == [(True, False), (True, True)]
        with pytest.raises(ProviderError, match="one provider alone"):
            world(chain.tron, [liar, SILENT]).spender.fate(case(draft, attempt))
        with pytest.raises(ProviderError, match="disagree"):
            world(chain.tron, [liar, honest]).spender.fate(case(draft, attempt))
        three = world(chain.tron, [liar, honest, chain.tron.url]).spender.fate(case(draft, attempt))
    assert (three.is_success, three.is_witnessed) == (True, True)


def _failed(answer: Any) -> Any:
    return answer | {"result": "FAILED"}


def _reverted(answer: Any) -> Any:
    for one in answer.get("transactions", ()):
        one["ret"] = [{"contractRet": "REVERT"}]
    return answer


@pytest.mark.parametrize("twists", [{"gettransactioninfobyid": _failed}, {"getblockbynum": _reverted}])
@pytest.mark.parametrize("is_token", [True, False])
def test_it_succeeded_only_where_block_and_outcome_say_so(
    chain: World,
    twists: dict[str, Twist],
    is_token: bool,  # noqa: FBT001
) -> None:
    draft, attempt = paid(chain, is_token=is_token)

    with twisted(chain, **twists) as liar:
        fate = liar.spender.fate(case(draft, attempt))
    assert (fate.kind, [each.effect for each in fate.outputs]) == (FateKind.INCLUDED, ["none"])


@pytest.mark.parametrize(
    "twist",
    [
        lambda liar: liar | {"receipt": {}},
        lambda liar: liar | {"receipt": {"result": "REVERT"}},
        lambda liar: liar | {"id": "00" * 32},
        lambda liar: liar | {"fee": -1},
        lambda liar: liar | {"blockNumber": liar["blockNumber"] - 1},
        lambda liar: liar | {"blockNumber": 10**6},
    ],
    ids=["no outcome", "another outcome", "another's", "a fee below nothing", "another block", "no block"],
)
def test_an_outcome_that_contradicts_itself_proves_nothing(chain: World, twist: Twist) -> None:
    draft, attempt = paid(chain)

    with twisted(chain, gettransactioninfobyid=twist) as liar, pytest.raises(ProviderError):
        liar.spender.fate(case(draft, attempt))


def test_of_one_spend_two_are_never_included(chain: World) -> None:
    draft, attempt = paid(chain)
    _, other = paid(chain)

    with pytest.raises(ProviderError, match="two transactions"):
        chain.spender.fate(case(draft, attempt, other))


def _log(sender: str, to: str, units: int) -> dict[str, Any]:
    words = (wire.raw_of(each).hex().rjust(64, "0") for each in (sender, to))
    return {"address": wire.raw_of(USDT).hex(), "topics": [TRANSFER_TOPIC, *words], "data": f"{units:064x}"}


@pytest.mark.parametrize(
    ("logs", "effect", "left", "arrived"),
    [
        ([], "none", 0, 0),
        ([(BUYER.address, THEIRS, UNITS)], "none", 0, 0),
        ([(HOT_KEY.address, THEIRS, UNITS - 1), (HOT_KEY.address, USDT, 1)], "other", UNITS, UNITS - 1),
        ([(HOT_KEY.address, BUYER.address, UNITS)], "other", UNITS, 0),
        ([(HOT_KEY.address, THEIRS, UNITS)] * 2, "other", 2 * UNITS, 2 * UNITS),
        ([(HOT_KEY.address, THEIRS, UNITS), (BUYER.address, HOT_KEY.address, 9)], "exact", 0, 0),
    ],
    ids=["nothing", "not ours", "a fee", "to another", "twice", "something came"],
)
def test_a_tokens_movement_is_read_from_its_logs(
    chain: World, logs: list[tuple[str, str, int]], effect: str, left: int, arrived: int
) -> None:
    draft, attempt = paid(chain)

    def told_logs(liar: Any) -> Any:
        return liar | {"log": [_log(*each) for each in logs]}

    with twisted(chain, gettransactioninfobyid=told_logs) as liar:
        (output,) = liar.spender.fate(case(draft, attempt)).outputs
    assert (output.effect, output.left_units, output.arrived_units) == (effect, left, arrived)


def test_a_block_s_number_is_the_one_that_was_asked_for(chain: World) -> None:
    height = chain.tron.mine()

    def later(answer: Any) -> Any:
        if answer.get("blockID") != chain.tron.chain.ids[0]:
            answer["block_header"]["raw_data"]["number"] = height + 1
        return answer

    with twisted(chain, getblockbynum=later) as liar, pytest.raises(ProviderError, match=f"asked for block {height}"):
        liar.reader.block(height)
