"""A window ends by the scan's clock, whatever one provider says of the irreversible block."""

from datetime import UTC, datetime, timedelta

import pytest

from chains.base import Block, ProviderError
from chains.spending import Scanned
from chains.tron.spends.drafts import AHEAD_MAX, LIFE, window_of

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def solid(ahead: timedelta) -> Block:
    return Block(height=100, hash="ab" * 32, parent_height=99, parent_hash="cd" * 32, time=NOW + ahead)


@pytest.mark.parametrize(
    ("ahead", "ends_at"),
    [
        (timedelta(seconds=-57), NOW + LIFE - timedelta(seconds=57)),
        (timedelta(seconds=30), NOW + LIFE),
        (AHEAD_MAX, NOW + LIFE),
        (-LIFE, NOW),
    ],
)
def test_a_window_ends_its_life_after_the_earlier_of_both_blocks(ahead: timedelta, ends_at: datetime) -> None:
    window = window_of(solid(ahead), Scanned(height=119, time=NOW))
    assert (window.ends_at, window.reference) == (ends_at, "ab" * 32)


@pytest.mark.parametrize("ahead", [timedelta(days=36_500), AHEAD_MAX + timedelta(seconds=1)])
def test_a_block_far_ahead_of_the_scan_makes_no_window(ahead: timedelta) -> None:
    with pytest.raises(ProviderError, match="the scan is at"):
        window_of(solid(ahead), Scanned(height=119, time=NOW))


def test_before_the_first_scan_there_is_only_the_nodes_word() -> None:
    assert window_of(solid(timedelta(0)), None).ends_at == NOW + LIFE
