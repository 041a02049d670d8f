"""Watches the clock at each notification of the scheduler."""

from unittest.mock import Mock
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from actors.upkeep.clock import watch_clock
from models.db import clock
from models.db.base import execute, one
from models.invoices import quoting
from models.invoices import rows as invoices
from tests.models.builders import Chain
from tests.models.invoices.builders import invoice, keep_rates, settled

pytestmark = pytest.mark.usefixtures("database")


def test_after_the_clock_was_set_back_waiting_rows_are_due_and_it_is_logged_once() -> None:
    watch_clock()
    execute("INSERT INTO rate_sources (source, ask_at) VALUES ('a', app_now() + interval '30 minutes')")
    execute("UPDATE app_clock SET ahead = ahead - interval '2 hours'")

    with capture_logs() as lines:
        watch_clock()
        watch_clock()

    (line,) = [line for line in lines if line["event"] == "clock.set_back"]
    assert (7190 < line["seconds"] <= 7200, line["released"]) == (True, 1)
    assert one("SELECT ask_at <= app_now() FROM rate_sources") == (True,)


def test_waits_are_released_even_if_quotes_cannot_be_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    watch_clock()
    execute("INSERT INTO rate_sources (source, ask_at) VALUES ('a', app_now() + interval '30 minutes')")
    execute("UPDATE app_clock SET ahead = ahead - interval '2 hours'")
    with monkeypatch.context() as broken:
        broken.setattr(quoting, "take_back_future", Mock(side_effect=TimeoutError))
        with pytest.raises(TimeoutError):
            watch_clock()

    assert one("SELECT ask_at <= app_now() FROM rate_sources") == (True,)
    assert clock.set_back_s() > 0


def test_quotes_written_by_a_clock_ahead_are_withdrawn(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    execute("UPDATE app_clock SET ahead = ahead + interval '2 hours'")
    watch_clock()
    assert settled(mine).generation > 1
    execute("UPDATE app_clock SET ahead = ahead - interval '2 hours'")
    watch_clock()

    assert invoices.reread(mine.id).generation == 1
    del chain
