"""Measures how far a scan is behind, and whether it finds new payments in time."""

from __future__ import annotations

import pytest

from models.db.base import execute
from models.deposits import cursors, scans
from models.deposits.scans import IDLE_GRACE_S, LAG_MAX_S, Scan, blocks_behind
from tests.models.builders import CATALOGUE, Chain


@pytest.mark.parametrize(
    ("units", "idle_s", "blocks"),
    [(0, 0, 0), (7, 5, 7), (0, IDLE_GRACE_S + 11.9, 0), (0, IDLE_GRACE_S + 12.1, 1), (3, 610, 50), (99, 610, 99)],
)
def test_the_lag_is_the_larger_of_reported_and_expected_blocks(units: int, idle_s: float, blocks: int) -> None:
    assert blocks_behind(units, idle_s=idle_s, block_time_ms=12_000) == blocks


@pytest.mark.parametrize(
    ("lag_blocks", "block_time_ms", "is_halted", "is_current"),
    [
        (0, 12_000, False, True),
        (10, 12_000, False, True),
        (11, 12_000, False, False),
        (480, 250, False, True),
        (481, 250, False, False),
        (0, 12_000, True, False),
    ],
)
def test_a_scan_keeps_up_if_its_chain_is_at_most_two_minutes_ahead(
    lag_blocks: float, block_time_ms: int, *, is_halted: bool, is_current: bool
) -> None:
    scan = Scan(lag_blocks=lag_blocks, idle_s=0, is_halted=is_halted, block_time_ms=block_time_ms)

    assert LAG_MAX_S == 120
    assert scan.is_current == is_current


def test_scans_are_returned_for_the_given_networks(database: str) -> None:
    del database
    for network in ("ethereum", "bsc", "polygon"):
        Chain(network)
    cursors.halt("ethereum", "providers disagree")
    cursors.seen_head("bsc", 10_000)
    execute("UPDATE chain_cursors SET network = 'gone' WHERE network = 'polygon'")

    read_rows = scans.read({code: CATALOGUE.networks[code] for code in ("ethereum", "bsc", "base")})

    assert {code: (scan.is_halted, scan.is_current) for code, scan in read_rows.items()} == {
        "ethereum": (True, False), "bsc": (False, False),
    }  # fmt: skip
