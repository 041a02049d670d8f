"""Duties of a wallet whose numbers end and that has one spend in no block at a time."""

from __future__ import annotations

from typing import cast

import pytest
from structlog.testing import capture_logs

from actors.treasury import sweep
from models.db.base import rows
from models.spends import signing_stops
from tests.chains.contract.rig import Rig, status, stored
from tests.chains.contract.toy import SeqnoRig
from tests.chains.toy.other_claims import LIFE_S
from tests.chains.toy.plug import TOKEN

pytestmark = [pytest.mark.rigs("toyseqno"), pytest.mark.fresh_database]


def test_many_addresses_get_gas_by_one_spend_and_are_swept(rich: Rig) -> None:
    rig = cast("SeqnoRig", rich)
    owners = [stored(rig.invoice()) for _ in range(3)]
    for address in owners:
        rig.chain.faucet(address, 5_000_000, TOKEN)
    rig.advance(rig.network.maturity)
    rig.gather()
    rig.gather()
    assert rows(
        "SELECT count(DISTINCT s.id), count(*) FROM spends s JOIN spend_outputs o ON o.spend_id = s.id"
        " WHERE s.purpose = 'gas'"
    ) == [(1, 3)]
    assert [rig.chain.units_at(address, TOKEN) for address in owners] == [0, 0, 0]
    assert rig.chain.units_at(rig.hot, TOKEN) == 15_000_000
    assert rows("SELECT count(*) > 0 FROM charges WHERE status = 'booked'") == [(True,)]
    assert rig.findings() == []


def test_an_ended_number_is_taken_again_and_paid_once(rich: Rig) -> None:
    recipient = rich.recipient()
    order = rich.order(recipient)
    rich.sign()
    rich.outlive()
    rich.advance(rich.network.maturity)
    rich.sign()
    rich.follow()
    assert rows("SELECT slot, state FROM spends ORDER BY id") == [(0, "dead"), (0, "confirmed")]
    assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")


def test_seqno_taken_by_a_stranger_stops_the_signing(rich: Rig) -> None:
    """A thief of the key uses a number that was given back: no row explains it until it is read."""
    recipient = rich.recipient()
    rich.order(recipient)
    rich.sign()
    rich.outlive()
    rich.advance(rich.network.maturity)
    rich.sign()
    thief = rich.recipient()
    rich.usurp(thief, 50_000)
    for _ in range(2):
        rich.advance(rich.network.maturity)
        rich.sign()
    assert signing_stops.read(rich.code) is not None
    assert rich.units_at(recipient) == 0


def test_a_message_late_after_a_restore_pays_once(rich: Rig) -> None:
    """Its row is lost, and it is still on its way: nothing is signed before it has ended, or is found."""
    recipient = rich.recipient()
    order = rich.order(recipient)
    backup = rich.copy()
    rich.sign()
    ((raw,),) = rows("SELECT raw FROM spend_attempts")
    rich.forget_waiting()
    rich.go_back_to(backup)
    for _ in range(3):
        rich.advance()
        rich.sign()
    assert rows("SELECT count(*) FROM spends") == [(0,)], "the lost message may still come"
    rich.pass_time(LIFE_S // 2)
    rich.include(bytes(raw))
    rich.catch_up()
    rich.outlast()
    rich.sign()
    rich.follow()
    assert signing_stops.read(rich.code) is None
    assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")
    assert rows("SELECT count(*) FROM spends") == [(1,)]


def test_a_lost_message_that_never_comes_holds_up_its_order_until_it_has_ended(rich: Rig) -> None:
    recipient = rich.recipient()
    order = rich.order(recipient)
    backup = rich.copy()
    rich.sign()
    rich.forget_waiting()
    rich.go_back_to(backup)
    rich.advance()
    rich.sign()
    assert rows("SELECT count(*) FROM spends") == [(0,)]
    rich.outlast()
    rich.advance()
    rich.sign()
    rich.follow()
    assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")
    assert rows("SELECT slot FROM spends") == [(0,)]


def test_the_hot_wallets_excess_leaves_when_nothing_else_is_on_its_way(rich: Rig) -> None:
    cold = rich.recipient()
    rich.env |= {f"{rich.code.upper()}_COLD_ADDRESS": cold, "HOT_LIMIT_USD": "50"}
    rich.restart()
    rich.advance()
    recipient = rich.recipient()
    order = rich.order(recipient)
    rich.sign()
    with capture_logs() as logs:
        sweep.keep_treasury(rich.code)
    assert (rows("SELECT purpose FROM spends"), logs) == ([("payout",)], []), "it waits for its turn"
    rich.follow()
    sweep.keep_treasury(rich.code)
    later = rich.order(rich.recipient())
    rich.sign()
    assert rows("SELECT purpose FROM spends ORDER BY id") == [("payout",), ("cold",)]
    rich.follow()
    rich.follow()
    assert (status(order), status(later)) == ("confirmed", "confirmed")
    assert rich.units_at(cold) > 0
    assert rich.findings() == []
