"""Limits how often a lasting state is logged."""

from core.logs.throttle import LogThrottle


def test_a_topic_passes_once_an_interval_and_delays_no_other() -> None:
    now_s = 100.0
    throttle = LogThrottle(every_s=60, clock=lambda: now_s)
    assert throttle.allows("a")
    assert not throttle.allows("a")
    assert throttle.allows("b")
    now_s = 159.9
    assert not throttle.allows("a")
    now_s = 160.0
    assert throttle.allows("a")
