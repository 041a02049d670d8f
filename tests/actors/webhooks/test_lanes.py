"""Shares a process's slots: wide lanes for quick receivers, narrow ones for slow and dead ones."""

import pytest

from actors.webhooks import lanes as webhook_lanes
from actors.webhooks.lanes import IDLE_LANES_MAX, SLOW_S, START_WIDTH, WIDTH_MAX, Lanes


def attempt(lanes: Lanes, merchant: str = "a", *, is_success: bool = True, took_s: float = 0.01) -> None:
    lanes.enter(merchant)
    lanes.leave(merchant, is_success=is_success, took_s=took_s)


def width(lanes: Lanes, merchant: str = "a") -> int:
    return lanes.allowances().get(merchant, START_WIDTH)


def test_a_quick_receiver_gets_a_wide_lane_up_to_the_limit() -> None:
    lanes = Lanes()
    attempt(lanes)
    assert width(lanes) == 2 * START_WIDTH
    for _ in range(20):
        attempt(lanes)
    assert width(lanes) == WIDTH_MAX


def test_a_failing_receiver_gets_a_narrow_lane_but_at_least_one_slot() -> None:
    lanes = Lanes()
    for _ in range(20):
        attempt(lanes, is_success=False)
    assert width(lanes) == 1


def test_a_slow_success_narrows_the_lane_like_a_failure() -> None:
    lanes = Lanes()
    attempt(lanes, took_s=SLOW_S)
    assert width(lanes) == START_WIDTH // 2


def test_a_recovered_receiver_gets_its_width_back() -> None:
    lanes = Lanes()
    for _ in range(20):
        attempt(lanes, is_success=False)
    for _ in range(20):
        attempt(lanes)
    assert width(lanes) == WIDTH_MAX


def test_attempts_under_way_count_against_the_lane() -> None:
    lanes = Lanes()
    for _ in range(START_WIDTH):
        lanes.enter("a")
    assert lanes.allowances() == {"a": 0}
    lanes.give_up("a")
    assert lanes.allowances() == {"a": 1}


def test_a_lane_narrower_than_its_attempts_under_way_allows_no_more() -> None:
    lanes = Lanes()
    for _ in range(START_WIDTH):
        lanes.enter("a")
    lanes.leave("a", is_success=False, took_s=10)
    assert lanes.allowances() == {"a": 0}


def test_a_returned_attempt_does_not_change_the_lane() -> None:
    lanes = Lanes()
    lanes.enter("a")
    lanes.give_up("a")
    assert width(lanes) == START_WIDTH


def test_merchants_have_their_own_lanes() -> None:
    lanes = Lanes()
    attempt(lanes, "dead", is_success=False)
    attempt(lanes, "quick")
    assert (width(lanes, "dead"), width(lanes, "quick")) == (START_WIDTH // 2, START_WIDTH * 2)


def test_the_number_of_remembered_idle_lanes_is_bounded() -> None:
    lanes = Lanes()
    for number in range(IDLE_LANES_MAX + 10):
        attempt(lanes, str(number), is_success=False)
    known = lanes.allowances()
    assert len(known) == IDLE_LANES_MAX
    assert "0" not in known


def test_slow_receivers_together_leave_slots_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_lanes, "NARROW_BUSY_MAX", 3)
    lanes = Lanes()
    for merchant_id in "abcd":
        lanes.enter(merchant_id)
        lanes.leave(merchant_id, is_success=False, took_s=10)
    lanes.enter("healthy")
    for merchant_id in "ab":
        lanes.enter(merchant_id)
    assert lanes.allowances()["d"] > 0
    lanes.enter("c")
    free = lanes.allowances()
    assert {free[merchant_id] for merchant_id in "abcd"} == {0}
    assert free["healthy"] == START_WIDTH - 1
    lanes.give_up("c")
    assert lanes.allowances()["d"] > 0
