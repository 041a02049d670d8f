"""What is always true is said once in a while."""

from core.logs.throttle import Seldom


def test_a_topic_passes_once_in_its_time_and_does_not_hold_up_others() -> None:
    now_s = 100.0
    seldom = Seldom(every_s=60, clock=lambda: now_s)
    assert seldom.passes("a")
    assert not seldom.passes("a")
    assert seldom.passes("b")
    now_s = 159.9
    assert not seldom.passes("a")
    now_s = 160.0
    assert seldom.passes("a")
