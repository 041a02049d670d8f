"""Logs a coin that queued payouts lack as an error, once an hour over all processes."""

from __future__ import annotations

import contextlib

import pytest
from structlog.testing import capture_logs

from actors.treasury import liquidity
from actors.treasury.liquidity import watch_liquidity
from models.db.base import execute
from tests.actors.asking import configure
from tests.models.builders import USDT
from tests.models.payouts.held import funded, payout
from tests.models.treasury.builders import hold


def logged() -> list[dict[str, object]]:
    with capture_logs() as lines:
        watch_liquidity()
    return [dict(line) for line in lines if line["event"] == "liquidity.missing"]


def test_a_shortage_of_payouts_is_logged_once_an_hour(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(database)
    assert logged() == []
    hold("USDT", "ethereum", 4 * USDT)
    payout(funded(), status="approved")
    [line] = logged()
    assert line == {
        "event": "liquidity.missing", "log_level": "error", "currency": "USDT", "network": "ethereum", "amount": "6",
    }  # fmt: skip
    assert logged() == []
    with monkeypatch.context() as patch:
        patch.setattr(liquidity, "single_flight", lambda _name: contextlib.nullcontext(enter_result=False))
        assert logged() == [], "another process checks"
    execute("UPDATE app_clock SET ahead = ahead + interval '61 minutes'")
    assert len(logged()) == 1
