"""The tick that lifts a stop: it only lifts, it looks at the database first, and it notifies the signer."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from actors.queue.schedule import rings
from actors.recovery import resume
from actors.signer import rollback
from models.db.base import execute, rows, transaction
from models.spends import signing_stops, unexplained
from models.spends.unexplained import Part
from tests.actors.signer.world import SpendWorld
from tests.models.spends.departures import OUT_OF_BLOCKS, a_departure


def caught_up(world: SpendWorld) -> str:
    """Stop a network whose scan has read the whole chain since; return its code."""
    code = world.network.code
    with transaction():
        assert signing_stops.stop(code, reason="a test")
    signing_stops.note_caught_up(code)
    return code


def test_the_signer_is_notified_of_a_lifted_stop_alone(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "ring", rung := Mock())
    resume.resume_signing(world.network.code)
    assert rung.mock_calls == [], "nothing was stopped"

    code = caught_up(world)
    execute("UPDATE signing_stops SET is_caught_up = false")
    resume.resume_signing(code)
    assert (rung.mock_calls, signing_stops.read(code) is None) == ([], False)

    signing_stops.note_caught_up(code)
    resume.resume_signing(code)
    rung.assert_called_once_with("broadcast", code)
    assert signing_stops.read(code) is None


def test_a_stop_ends_with_the_schedulers_notification_if_all_others_were_lost(
    world: SpendWorld, rung: list[str]
) -> None:
    code = caught_up(world)
    rung.clear()
    sent = [ring.args for ring in rings(world.ctx.settings) if ring.doorbell.actor == "resume_signing"]
    for args in sent:
        resume.resume_signing(*args)
    assert signing_stops.read(code) is None


def test_a_stop_of_an_older_state_begins_again_before_it_may_be_lifted(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state is a snapshot of the moment when that stop was about to be lifted."""
    code = caught_up(world)
    monkeypatch.setattr(rollback, "look", signing_stops.distrust)
    resume.resume_signing(code)
    assert rows("SELECT reason, is_caught_up FROM signing_stops") == [(signing_stops.ANOTHER_DATABASE, False)]


def test_a_stop_from_another_database_begins_again_before_it_may_be_lifted(world: SpendWorld) -> None:
    code = caught_up(world)
    execute("UPDATE database_marks SET timeline = '00000000' WHERE network = %s", (code,))
    resume.resume_signing(code)
    assert rows("SELECT reason, is_caught_up FROM signing_stops") == [(signing_stops.ANOTHER_DATABASE, False)]


def test_a_reason_that_the_signer_wrote_while_the_stop_ended_does_not_stay(world: SpendWorld) -> None:
    code = caught_up(world)
    order = world.order()
    world.step()
    assert (signing_stops.read(code), world.payout(order).status) == (None, "sent")

    with transaction():
        signing_stops.stop(code, reason="a test")
    waits = world.order()
    # The signer's step alone, as its tick runs while the other one does not.
    world.sign()
    signing_stops.note_caught_up(code)
    resume.resume_signing(code)
    signing_stops.tell_payouts(code, "a test")
    execute("UPDATE payouts SET due_at = app_now() + interval '1 hour' WHERE status = 'approved'")
    world.sign()
    assert (world.payout(waits).status, world.payout(waits).wait_reason) == ("sent", "")


def test_a_departure_that_no_block_can_include_is_dismissed_without_a_stop_too(world: SpendWorld) -> None:
    """Its coins were spent otherwise once signing went on. Cheques of its sum would wait for ever."""
    code, order = world.network.code, world.order()
    gone: dict[str, Any] = {"network": code, "slot": None, "currency": "USDT", "contract": world.token, "decimals": 6}
    outputs = [Part(order.address, 10 * 10**6).to_json()]
    with transaction():
        unexplained.note(a_departure("0xvoid", outputs=outputs, expires_height=0, **gone))
        unexplained.note(a_departure("0xalive", outputs=outputs, expires_height=10**9, **gone))
    execute(OUT_OF_BLOCKS)
    execute("DELETE FROM signing_stops")
    resume.resume_signing(code)
    assert rows("SELECT txid, status, settled_by FROM unexplained_departures ORDER BY 1") == [
        ("0xalive", "unexplained", ""), ("0xvoid", "dismissed", "the gateway"),
    ]  # fmt: skip
    assert world.payout(order).status == "approved", "nothing is adopted: bytes may be signed meanwhile"
