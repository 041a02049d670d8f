"""Expires cheques, and ends claims that stopped halfway."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from actors.payout_links import ticks
from actors.payout_links.ticks import expire_payout_links, reap_claims
from models.db.base import execute, one, transaction
from models.payout_links import claims as payout_link_claims
from models.payout_links import rows as payout_links
from models.payout_links.rows import PayoutLinkRow
from models.payouts import freezes
from models.spends import signing_stops
from tests.actors.payout_links.world import configure
from tests.models.builders import USDT, endpoint
from tests.models.ledger.figures import balances_of
from tests.models.payout_links.builders import ANN, BOB, HELD, advance, claimed, claiming, funded


def status(link: PayoutLinkRow) -> str:
    return payout_links.reread(link.id).status


def test_only_due_links_expire(shop: UUID, rung: list[str]) -> None:
    due, young, taken = funded(shop), funded(shop, lifetime_h=9), claimed(funded(shop))
    rung.clear()
    advance(2)

    expire_payout_links()

    assert [status(link) for link in (due, young, taken)] == ["expired", "funded", "claimed"]
    assert balances_of(shop) == {"available": 100 * USDT - 2 * HELD, "payout_held": 2 * HELD}
    assert rung == []


def test_more_than_a_page_notifies_the_next_tick(shop: UUID, monkeypatch: pytest.MonkeyPatch, rung: list[str]) -> None:
    monkeypatch.setattr(ticks, "DUE_PER_STEP", 2)
    for _ in range(3):
        funded(shop, amount_units=USDT)
    advance(2)

    expire_payout_links()
    assert rung == ["expire_payout_links"]
    expire_payout_links()

    assert rung == ["expire_payout_links"]
    assert balances_of(shop) == {"available": 100 * USDT}


def test_a_broken_row_delays_no_other(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, sound = funded(shop), funded(shop)
    advance(2)
    expire = payout_links.expire

    def expire_unless_broken(link_id: UUID) -> bool:
        if link_id == broken.id:
            raise ZeroDivisionError
        return expire(link_id)

    monkeypatch.setattr(payout_links, "expire", expire_unless_broken)
    expire_payout_links()

    assert (status(broken), status(sound)) == ("funded", "expired")


def test_a_link_can_be_claimed_after_a_freeze_that_outlasts_it(shop: UUID) -> None:
    link = funded(shop)
    freezes.freeze("all", reason="test", frozen_by="test")
    for _ in range(3):
        advance(2)
        expire_payout_links()
    assert status(link) == "funded"

    freezes.unfreeze("all")
    expire_payout_links()

    assert claimed(link).status == "claimed"


def test_a_link_expires_some_time_after_its_freeze(shop: UUID) -> None:
    link = funded(shop)
    freezes.freeze("all", reason="test", frozen_by="test")
    advance(2)
    expire_payout_links()
    freezes.unfreeze("all")
    advance(3)

    expire_payout_links()

    assert status(link) == "expired"


def test_a_stuck_claim_is_finished(shop: UUID, rung: list[str]) -> None:
    endpoint(shop)
    stuck, young = funded(shop), funded(shop)
    claiming(stuck)
    advance(0.26)
    claiming(young)

    reap_claims()

    assert (status(stuck), status(young)) == ("claimed", "claiming")
    assert sorted(rung) == ["broadcast:ethereum", "deliver_webhooks"]
    assert one("SELECT address, order_id FROM payouts") == (ANN, f"payoutlink:{stuck.id}")


def test_a_stuck_claim_to_a_newly_denied_address_is_reversed(shop: UUID, database: str, tmp_path: Path) -> None:
    link = funded(shop, lifetime_h=9)
    claiming(link)
    (tmp_path / "denied").write_text(ANN, encoding="utf-8")
    configure(database, DENY_LIST=str(tmp_path / "denied"))
    advance(0.26)

    reap_claims()

    assert status(link) == "funded"
    assert claimed(link, BOB).claim_address == BOB


def test_a_stuck_claim_waits_while_the_database_may_lack_another_claim(shop: UUID) -> None:
    """In the lost time it may have been reversed, and its link claimed and paid elsewhere."""
    link = funded(shop, lifetime_h=9)
    claiming(link)
    advance(0.26)
    with transaction():
        signing_stops.stop("ethereum", reason="restored")

    reap_claims()
    assert status(link) == "claiming"

    execute("DELETE FROM signing_stops")
    reap_claims()
    assert status(link) == "claimed"


def test_a_stuck_claim_that_cannot_be_finished_is_reversed(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    link = funded(shop, lifetime_h=9)
    claiming(link)
    advance(0.26)

    def fails(*_: Any) -> Any:
        execute("INSERT INTO payouts (id) VALUES (NULL)")

    monkeypatch.setattr(payout_link_claims, "finish", fails)
    reap_claims()

    assert status(link) == "funded"
    assert balances_of(shop)["payout_held"] == HELD


def test_the_reaper_may_run_twice(shop: UUID) -> None:
    link = funded(shop)
    claiming(link)
    advance(0.26)

    reap_claims()
    reap_claims()

    assert status(link) == "claimed"
    assert one("SELECT count(*) FROM payouts") == (1,)
