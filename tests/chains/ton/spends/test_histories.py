"""Accounts with more transactions than are read at once do not hold a spend: each look goes on where one stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from chains.base import ContradictionError, ProviderError
from chains.net import http
from chains.net.budget import BudgetSpentError, budget
from chains.spending import Attempt, Draft, Fate, FateKind, Output
from chains.ton import messages, nodes, requests, transactions
from chains.ton.cells import Cell, CellError
from chains.ton.nodes import Toncenter
from chains.ton.spends import arrivals, history, kept
from chains.ton.spends.arrivals import Histories
from chains.ton.spends.history import TooManyError, Walk
from chains.ton.transactions import Transaction
from chains.ton.transfers import comment
from tests.chains.ton.spends.test_fates import REFUSER, make
from tests.chains.ton.spends.world import FRESH, HOT_KEY, THEIRS, USDT, World, case, payment, payments
from tests.peers.json_rpc_node import Refusal
from tests.peers.ton.chain import TON

PAGE = 5
WAITING, INCLUDED = FateKind.WAITING, FateKind.INCLUDED


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read ten transactions of an account at once, not a thousand."""
    monkeypatch.setattr(nodes, "HISTORY_PAGE", PAGE)
    monkeypatch.setattr(history, "PAGES_MAX", 2)
    monkeypatch.setattr(arrivals, "PAGES_MAX", 2)


def flood(ton: World, address: str, count: int) -> None:
    for units in range(count):
        ton.ton.give(address, units + 1)


def state(fate: Fate) -> FateKind:
    """Return the kind of a fate, by which a spend waits while an output is on its way."""
    return WAITING if any(output.effect is None for output in fate.outputs) else fate.kind


def looks(ton: World, draft: Draft, attempt: Attempt) -> list[FateKind]:
    """Look at a spend until it has ended; at most twenty times."""
    kinds = list[FateKind]()
    while len(kinds) < 20 and INCLUDED not in kinds:
        try:
            kinds.append(state(ton.spender.fate(case(draft, attempt))))
        except TooManyError:
            kinds.append(WAITING)
    return kinds


def effects(ton: World, draft: Draft, attempt: Attempt) -> list[str | None]:
    return [output.effect for output in ton.spender.fate(case(draft, attempt)).outputs]


def asked(ton: World, address: str) -> Callable[[], int]:
    """Return a counter of the questions about an account's transactions from now on."""
    seen = list[object]()

    def note(truth: Any, params: dict[str, Any]) -> Any:
        seen.extend([params] if params["address"] == address else [])
        return truth

    ton.nodes[0].lies["getTransactions"] = note
    return lambda: len(seen)


@pytest.mark.parametrize("blocks", [0, 3, 300])
def test_a_recipient_flooded_in_the_block_after_its_payout(ton: World, blocks: int) -> None:
    draft, attempt = ton.sent(payment(TON, to=FRESH))
    ton.chain.mine(2)
    flood(ton, FRESH, 12)
    ton.chain.mine(1 + blocks)
    count = asked(ton, FRESH)
    assert looks(ton, draft, attempt) == [INCLUDED]
    # The newest page, and the one of the block that has the arrival.
    assert count() == 2


def test_a_recipient_flooded_in_the_block_of_its_payout(ton: World) -> None:
    draft, attempt = ton.sent(payment(TON, to=FRESH))
    ton.chain.mine()
    flood(ton, FRESH, 60)
    ton.chain.mine(4)
    [*waits, last] = looks(ton, draft, attempt)
    assert last is INCLUDED
    # Each look is progress of a page at least.
    assert set(waits) <= {WAITING}
    assert len(waits) < 60 // PAGE


def test_two_recipients_flooded_at_once(ton: World) -> None:
    draft, attempt = ton.sent(payments(*(Output(recipient=each, units=TON) for each in (THEIRS, FRESH))))
    ton.chain.mine(2)
    for address in (THEIRS, FRESH):
        flood(ton, address, 12)
    ton.chain.mine(4)
    assert looks(ton, draft, attempt) == [INCLUDED]


def test_a_recipient_that_is_busy_all_the_time(ton: World) -> None:
    draft, attempt = ton.sent(payment(TON, to=FRESH))
    for _ in range(8):
        flood(ton, FRESH, 20)
        ton.chain.mine()
    [*waits, last] = looks(ton, draft, attempt)
    # Not all 160 transactions are read.
    assert (last, len(waits) <= 2) == (INCLUDED, True)


def test_a_recipient_flooded_where_old_states_are_lost(ton: World) -> None:
    draft, attempt = ton.sent(payment(TON, to=FRESH))
    ton.chain.mine(2)
    flood(ton, FRESH, 60)
    ton.chain.mine(9)
    ton.nodes[0].prune(ton.chain.head.id.seqno - 2)
    [*waits, last] = looks(ton, draft, attempt)
    assert last is INCLUDED
    assert 2 < len(waits) < 60 // PAGE


def test_a_message_that_comes_late_to_a_busy_recipient(ton: World) -> None:
    """Windows go on with each block that comes."""
    draft, attempt = ton.sent(payments(Output(recipient=THEIRS, units=TON), Output(recipient=FRESH, units=TON)))
    ton.chain.mine()
    own = ton.chain.ran[HOT_KEY.address][-1].transaction
    message = next(each for each in own.outgoing if each.recipient == FRESH)
    [late] = [cell for cell in ton.chain._waiting if cell == message.cell]
    ton.chain._waiting.remove(late)
    count = asked(ton, FRESH)
    for _ in range(3):
        flood(ton, FRESH, 15)
        ton.chain.mine()
        # More looks than pages, so that the last ones find nothing new.
        assert [effects(ton, draft, attempt) for _ in range(4)] == [["exact", None]] * 4
    ton.chain._waiting.append(late)
    flood(ton, FRESH, 15)
    ton.chain.mine(3)
    assert looks(ton, draft, attempt)[-1] is INCLUDED
    # Each page once, and the newest one of the first look.
    assert count() <= 4 * (15 // PAGE + 1) + 1


@pytest.mark.parametrize("expected", [(INCLUDED, ""), (FateKind.DEAD, "claim_used")])
def test_our_own_wallet_flooded_since_a_request_whose_states_are_lost(
    ton: World, expected: tuple[FateKind, str]
) -> None:
    draft, attempt = ton.signed(payment(TON))
    if expected[0] is FateKind.DEAD:
        # Another request uses the number.
        ton.sent(payment(2 * TON, to=FRESH))
    ton.spender.send(attempt.raw)
    ton.chain.mine(3)
    flood(ton, HOT_KEY.address, 60)
    ton.chain.mine(9)
    ton.nodes[0].prune(ton.chain.head.id.seqno - 5)
    fates = list[Fate]()
    looks_at_states = list[int]()
    while not fates:
        ton.nodes[0].asked.clear()
        with suppress(TooManyError):
            fates.append(ton.spender.fate(case(draft, attempt)))
        looks_at_states.append(ton.nodes[0].asked.count("getAddressInformation"))
    # Old states are looked for once.
    assert looks_at_states[0] > max(looks_at_states[1:])
    assert [(fate.kind, fate.cause) for fate in fates] == [expected]


def test_our_own_wallet_flooded_since_a_request_whose_states_are_kept(ton: World) -> None:
    draft, attempt = ton.sent(payment(TON))
    ton.chain.mine(3)
    flood(ton, HOT_KEY.address, 60)
    ton.chain.mine(9)
    assert looks(ton, draft, attempt) == [INCLUDED]


def test_arrivals_are_kept_between_looks(ton: World) -> None:
    draft, attempt = ton.sent(
        payments(Output(recipient=THEIRS, units=TON), Output(recipient=make(ton, REFUSER), units=TON))
    )
    ton.chain.mine(2)
    count = asked(ton, THEIRS)
    assert effects(ton, draft, attempt) == ["exact", None]
    assert count() == 1
    ton.chain.settle()
    assert effects(ton, draft, attempt) == ["exact", "none"]
    assert count() == 1


def test_transactions_of_a_form_of_their_own_do_not_hold_a_payout(ton: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those of a recipient nor those of the hot wallet."""
    draft, attempt = ton.sent(payment(TON, to=FRESH))
    ton.chain.settle()
    for address in (FRESH, HOT_KEY.address):
        flood(ton, address, 3)
    ton.chain.mine()
    real = transactions.read

    def read(cell: Cell, **named: Any) -> Transaction:
        transaction = real(cell, **named)
        if transaction.incoming.kind == "internal" and transaction.incoming.units < TON:
            raise CellError("a transaction of another form")
        return transaction

    monkeypatch.setattr(transactions, "read", read)
    assert looks(ton, draft, attempt) == [INCLUDED]


def test_braces_in_a_comment_do_not_hold_a_payout(ton: World, monkeypatch: pytest.MonkeyPatch) -> None:
    draft, attempt = ton.sent(payment(TON, to=FRESH))
    ton.chain.mine(2)
    ton.deliver(messages.internal(FRESH, 1, bounce=False, body=comment("{" * 3_000)))
    monkeypatch.setattr(http, "VALUES_MAX", 2_000)
    assert looks(ton, draft, attempt) == [INCLUDED]


def test_much_that_a_recipient_sends_on_is_not_kept(ton: World) -> None:
    _, _, fate = ton.paid(payment(TON, to=make(ton, REFUSER)))
    assert fate.outputs[0].effect == "none"
    own, returned = (
        each.transaction for each in (ton.chain.ran[HOT_KEY.address][-2], ton.chain.ran[REFUSER.address][-1])
    )
    sent_on = replace(returned, outgoing=(*own.outgoing, *returned.outgoing))
    coin, jettons = (Histories(node_of(ton), own, is_of_coin=is_of_coin) for is_of_coin in (True, False))
    assert [each.bounced for each in sent_on.outgoing] == [False, True]
    assert coin._kept(sent_on) == returned
    assert jettons._kept(sent_on) == sent_on


def test_a_recipient_whose_history_is_refused_does_not_hide_the_others(ton: World) -> None:
    draft, attempt = ton.sent(payments(Output(recipient=THEIRS, units=TON), Output(recipient=FRESH, units=TON)))
    ton.chain.settle()

    def but(address: str) -> None:
        ton.nodes[0].lies["getTransactions"] = lambda truth, params: (
            Refusal(500, "no") if params["address"] == address else truth
        )

    but(FRESH)
    assert effects(ton, draft, attempt) == ["exact", None]
    # The arrival that was seen is known, though the node refuses to show it again.
    but(THEIRS)
    assert ton.spender.fate(case(draft, attempt)).is_success


def test_a_node_that_fails_is_asked_for_no_more_recipients(ton: World) -> None:
    draft, attempt = ton.sent(payments(*[Output(recipient=f"0:{each + 1:064x}", units=TON) for each in range(40)]))
    ton.chain.settle()
    failed = list[object]()

    def fail(truth: Any, params: dict[str, Any]) -> Any:
        if params["address"] == HOT_KEY.address:
            return truth
        failed.append(params)
        return Refusal(500, "LITE_SERVER_NETWORK: timeout")

    ton.nodes[0].lies["getTransactions"] = fail
    with pytest.raises(ProviderError):
        ton.spender.fate(case(draft, attempt))
    assert len(failed) < 10


def test_fifty_jetton_payouts_are_looked_at_side_by_side(ton: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a tenth of a second for each question, a look takes less than the step's ten seconds."""
    monkeypatch.setattr(nodes, "HISTORY_PAGE", 100)
    outputs = [Output(recipient=f"0:{each * 5 % 256:02x}{each + 1:062x}", units=1_000) for each in range(50)]
    draft, attempt = ton.sent(payments(*outputs, pair=USDT))
    ton.chain.settle()
    ton.chain.mine(20)
    real, running, alone = nodes.Toncenter.ask, list[object](), list[object]()

    def slow(*args: Any, **named: Any) -> Any:
        alone.extend([] if running else [args])
        running.append(args)
        time.sleep(0.01)
        running.pop()
        return real(*args, **named)

    monkeypatch.setattr(nodes.Toncenter, "ask", slow)
    assert ton.spender.fate(case(draft, attempt)).is_success
    # Of more than a hundred questions, these did not begin while another was under way.
    assert len(alone) < 70


@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_transaction_that_is_left_out_is_noticed(ton: World, place: int) -> None:
    flood(ton, FRESH, 12)
    ton.chain.mine()
    first = nodes.account(node_of(ton), FRESH).last_transaction_id

    def leave_out(truth: list[Any], _params: object) -> list[Any]:
        return truth[:place] + truth[place + 1 :]

    ton.nodes[0].lies["getTransactions"] = leave_out
    walk = Walk(FRESH, first=first)
    with pytest.raises(ContradictionError, match="follow"):
        [len(page) for page in walk.pages(node_of(ton))]
    # It goes on where it stopped.
    ton.nodes[0].be_honest()
    assert sum(len(page) for _ in range(9) for page in walk.pages(node_of(ton))) == 12 - place


def test_a_spend_waits_for_the_master_block_that_names_its_end(ton: World) -> None:
    """A node may show transactions of blocks that no master block that it knows names."""
    draft, attempt = ton.sent(payment(TON))
    before = ton.ton.ask("getMasterchainInfo")
    ton.chain.settle()
    ton.nodes[0].lies["getMasterchainInfo"] = before
    assert ton.spender.fate(case(draft, attempt)).kind is WAITING
    ton.nodes[0].be_honest()
    assert ton.spender.fate(case(draft, attempt)).kind is INCLUDED


def test_a_wallet_that_took_no_request_has_another_contract(ton: World, monkeypatch: pytest.MonkeyPatch) -> None:
    draft, attempt = ton.sent(payment(TON))
    ton.chain.settle()

    def read(_body: Cell) -> NoReturn:
        raise CellError("another form")

    monkeypatch.setattr(requests, "read", read)
    with pytest.raises(ProviderError, match="took no request"):
        ton.spender.fate(case(draft, attempt))


def test_another_account_s_transactions_are_not_believed(ton: World) -> None:
    ton.nodes[0].lies["getTransactions"] = ton.ton.ask("getTransactions", address=HOT_KEY.address)
    with pytest.raises(ContradictionError, match="another account's"):
        next(Walk(FRESH).pages(node_of(ton)))


def test_a_spent_budget_is_no_node_s_failure(ton: World) -> None:
    ton.sent(payment(TON))
    ton.chain.settle()
    own = ton.chain.ran[HOT_KEY.address][-1].transaction
    histories = Histories(node_of(ton), own, is_of_coin=True)
    assert histories.arrival(own.outgoing[0]) is None
    with budget(seconds=5, requests=0), pytest.raises(BudgetSpentError):
        histories.find()
    assert histories.failure is None
    histories.begin()
    assert histories.arrival(own.outgoing[0]) is None
    assert histories.find()
    assert histories.arrival(own.outgoing[0]) is not None


def node_of(ton: World) -> Toncenter:
    return Toncenter(ton.nodes[0].url, timeout_s=5)


def test_of_kept_values_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT_MAX", 2)
    values, made = kept.Kept[str, list[str]](), list[str]()

    def take(key: str) -> list[str]:
        with values.opened(key, lambda: made.append(key) or [key]) as value:  # type: ignore[func-returns-value]
            return value

    first = take("a")
    assert take("b") is not first
    assert take("a") is first
    take("c")
    assert take("a") is first
    take("b")
    assert made == ["a", "b", "c", "b"]


def test_a_kept_value_is_lent_to_one_thread_at_once() -> None:
    values = kept.Kept[str, list[str]]()
    with values.opened("a", list) as first:
        pass
    with values.opened("a", list) as one, values.opened("a", list) as other:
        assert one is first
        assert other is not first


def test_progress_is_kept_after_a_failure() -> None:
    values, first = kept.Kept[str, list[str]](), ["a"]
    with pytest.raises(ValueError, match="no"), values.opened("a", lambda: first):
        raise ValueError("no")
    with values.opened("a", list) as value:
        assert value is first
