"""What is always true is said once in a while."""

from core.logs.throttle import LogThrottle


def test_a_topic_passes_once_in_its_time_and_does_not_hold_up_others() -> None:
    now_s = 100.0
    throttle = LogThrottle(every_s=60, clock=lambda: now_s)
    assert throttle.allows("a")
    assert not throttle.allows("a")
    assert throttle.allows("b")
    now_s = 159.9
    assert not throttle.allows("a")
    now_s = 160.0
    assert throttle.allows("a")
