"""Bounds one merchant's calls under way; its others wait or are refused without delaying other merchants."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from actors.queue.merchant_limits import Shares
from core.errors import GatewayBusy
from core.ids import uuid7
from tests.actors.queue.workers import eventually

MINE, OTHER = uuid7(), uuid7()


def test_a_merchants_bound_does_not_affect_others() -> None:
    shares = Shares(2)
    with shares.taken(MINE), shares.taken(MINE):
        with pytest.raises(GatewayBusy), shares.taken(MINE):
            pytest.fail("it has two already")
        with shares.taken(OTHER), shares.taken(OTHER):
            pass
        with contextlib.ExitStack() as stack:
            for _ in range(10):
                stack.enter_context(shares.taken(None))
    with shares.taken(MINE):
        pass
    assert not shares._under_way


def test_a_few_of_a_merchants_calls_wait_for_their_turn() -> None:
    shares, ends, turns = Shares(1, waiting_max=1, patience_s=60), threading.Event(), []

    def take(number: int) -> None:
        with shares.taken(MINE):
            turns.append(number)
            ends.wait(60)

    with ThreadPoolExecutor(2) as pool:
        pool.submit(take, 1)
        eventually(lambda: turns == [1])
        pool.submit(take, 2)
        eventually(lambda: shares._waiting[MINE] == 1)
        with pytest.raises(GatewayBusy), shares.taken(MINE):
            pytest.fail("one waits already")
        ends.set()
    assert turns == [1, 2]
    assert not shares._waiting


def test_a_call_that_waited_too_long_is_refused() -> None:
    shares = Shares(1, waiting_max=1, patience_s=0.01)
    with shares.taken(MINE), pytest.raises(GatewayBusy), shares.taken(MINE):
        pytest.fail("it has one already")
    assert not shares._waiting
