"""Duties for a spend in trouble: an older offer, a thief with our key, a lie, extreme prices."""

from __future__ import annotations

from typing import cast

import pytest

from actors import context
from actors.rates import network_fees
from actors.treasury import sweep
from chains.family import CounterReader
from core.catalogue.families import traits_of
from models.db.base import rows
from models.payouts.rows import PayoutRow
from models.recovery import writeoffs
from models.spends import signing_stops
from models.spends.unexplained import UnexplainedRow
from tests.chains.contract.conftest import Start
from tests.chains.contract.rig import Rig, status, stored
from tests.chains.contract.solana import SolanaRig
from tests.chains.contract.tron import TronRig

STOLEN = 50_000
# Until what had to wait is tried again.
PAUSE_S = 30


@pytest.mark.needs("stall")
def test_an_older_offer_that_is_included_after_all_pays_once(rich: Rig) -> None:
    recipient = rich.recipient()
    order = rich.order(recipient)
    rich.sign()
    rich.stall()
    rich.sign()
    (original, raw), (dearer, _) = rows("SELECT txid, raw FROM spend_attempts ORDER BY number")
    assert original != dearer
    rich.include(bytes(raw))
    rich.follow()

    assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")
    assert rows("SELECT txid FROM payouts") == [(original,)]
    assert rows("SELECT state, mined_txid FROM spends") == [("confirmed", original)]
    # The booked fee is that of the older offer.
    assert rich.findings() == []


def robbed(rig: Rig) -> tuple[str, PayoutRow, bool]:
    """Let a thief use our key while a payout waits for a block; return its recipient, it, and whether it is void."""
    recipient, thief = rig.recipient(), rig.recipient()
    order = rig.order(recipient)
    rig.sign()
    is_void = rig.usurp(thief, STOLEN)
    rig.catch_up()
    assert rig.units_at(thief) == STOLEN
    return recipient, order, is_void


def test_a_theft_stops_the_signing_and_pays_no_recipient_twice(rich: Rig) -> None:
    recipient, order, is_void = robbed(rich)
    other = rich.recipient()
    later = rich.order(other)
    for _ in range(3):
        rich.advance(rich.network.maturity)
        rich.pass_time(PAUSE_S)
        rich.sign()

    assert signing_stops.read(rich.code) is not None
    assert (rich.units_at(recipient), status(order)) == ((0, "approved") if is_void else (rich.price, "confirmed"))
    assert (rich.units_at(other), status(later)) == (0, "approved")
    assert rows("SELECT state FROM spends") == [("dead" if is_void else "confirmed",)]


@pytest.mark.needs("write_off")
def test_a_payout_voided_by_a_thief_is_signed_again_after_the_write_off(rich: Rig) -> None:
    recipient, order, is_void = robbed(rich)
    if traits_of(rich.network).claim == "counter":
        reader, tip = cast("CounterReader", rich.reader), rich.tip()
        assert (reader.used_counters(rich.hot, tip - 1), reader.used_counters(rich.hot, tip)) == (0, 1)
        assert reader.counter_heights(rich.hot, 0, 0, tip) == [tip]
    if not is_void:
        rich.write_off(STOLEN)
        rich.outlast()
        rich.sign()
        rich.follow()
        assert signing_stops.read(rich.code) is None
        assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")
        assert rows("SELECT purpose, state FROM spends ORDER BY id") == [("payout", "confirmed"), ("lost", "confirmed")]
        assert rich.findings() == []
        return
    rich.sign()
    assert rows("SELECT state FROM spends") == [("sent",)], "what used the claim is not deep enough"

    rich.advance(rich.network.maturity)
    rich.sign()
    assert (rows("SELECT state FROM spends"), status(order)) == ([("dead",)], "approved"), "nothing before it is booked"
    rich.write_off(STOLEN)
    rich.outlast()
    rich.sign()
    rich.follow()

    assert signing_stops.read(rich.code) is None
    assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")
    assert rows("SELECT purpose, state FROM spends WHERE purpose = 'payout' ORDER BY id") == [
        ("payout", "dead"),
        ("payout", "confirmed"),
    ]
    assert rich.findings() == []


@pytest.mark.rigs("tron", "solana")
@pytest.mark.parametrize("providers", [2, 3])
def test_a_theft_that_one_of_three_makes_up_stops_nobody_for_good_and_one_of_two_has_to_be_looked_at(
    start: Start, providers: int
) -> None:
    """Providers report these blocks without proof: a liar could keep all payouts from being signed."""
    rig = cast("TronRig | SolanaRig", start(providers))
    rig.enrich()
    rig.advance(rig.network.maturity)
    recipient = rig.recipient()
    rig.invent_theft(0)
    rig.catch_up()
    assert signing_stops.read(rig.code) is not None
    order = rig.order(recipient)
    rig.outlast()
    rig.sign()
    rig.follow()

    is_outvoted = providers > 2
    assert (signing_stops.read(rig.code) is None) is is_outvoted
    assert (rig.units_at(recipient), status(order)) == ((rig.price, "confirmed") if is_outvoted else (0, "approved"))


@pytest.mark.rigs("tron", "solana")
def test_a_thiefs_transaction_without_coin_is_known_and_can_be_written_off(rich: Rig) -> None:
    """Staking, permissions, other tokens: the chain takes a fee, and an operator has to say that he has looked."""
    cast("TronRig | SolanaRig", rich).move_namesake()
    rich.catch_up()
    rich.sign()
    assert signing_stops.read(rich.code) is not None
    (theft,) = UnexplainedRow.read("true")
    assert (theft.is_transfer, theft.token_units, theft.recipient) == (False, 0, rich.hot)

    writeoffs.write_off(rich.catalogue, rich.code, rich.network.gas_currency, 0, reason="a thief's", by="operator")
    rich.outlast()
    rich.sign()
    rich.follow()
    assert signing_stops.read(rich.code) is None
    assert rich.findings() == []


@pytest.mark.rigs("solana")
def test_a_stranger_s_transaction_that_a_provider_ascribes_to_us_stops_nobody_for_good(start: Start) -> None:
    """Its own bytes prove who signed it, so that one honest provider is enough."""
    rig = cast("SolanaRig", start(2))
    rig.enrich()
    rig.advance(rig.network.maturity)
    recipient = rig.recipient()
    rig.ascribe_to_us(0)
    rig.catch_up()
    assert signing_stops.read(rig.code) is not None
    order = rig.order(recipient)
    rig.be_honest()
    rig.outlast()
    rig.sign()
    rig.follow()

    assert signing_stops.read(rig.code) is None
    assert (rig.units_at(recipient), status(order)) == (rig.price, "confirmed")


@pytest.mark.rigs("solana")
def test_a_theft_beside_a_greater_loss_of_the_thief_is_known_and_can_be_written_off(rich: Rig) -> None:
    cast("SolanaRig", rich).steal_in_company(7)
    rich.catch_up()
    rich.sign()
    (theft,) = UnexplainedRow.read("true")
    assert (theft.sender, theft.is_transfer, theft.token_units) == (rich.hot, False, 7)

    units = rich.catalogue.pairs[rich.currency, rich.code].to_ledger(7, rich.catalogue.scale(rich.currency))
    writeoffs.write_off(rich.catalogue, rich.code, rich.currency, units, reason="a thief's", by="operator")
    rich.outlast()
    rich.sign()
    rich.follow()
    assert signing_stops.read(rich.code) is None
    assert rich.findings() == []


@pytest.mark.needs("say_dead")
def test_one_provider_alone_buries_nothing(start: Start) -> None:
    rig = start(3)
    rig.enrich()
    rig.advance(rig.network.maturity)
    recipient = rig.recipient()
    order = rig.order(recipient)
    rig.sign()
    rig.forget_waiting()
    rig.say_dead(0)
    rig.sign()
    rig.sign()
    assert rows("SELECT state FROM spends") == [("sent",)]
    # Where a block of its own says so, nothing more is signed until the scan knows better.
    assert signing_stops.read(rig.code) is None or rig.claim == "coins"

    rig.be_honest()
    rig.advance()
    rig.pass_time(PAUSE_S)
    rig.sign()
    rig.follow()
    assert signing_stops.read(rig.code) is None
    assert (rig.units_at(recipient), status(order)) == (rig.price, "confirmed")
    assert rows("SELECT state FROM spends") == [("confirmed",)]


def test_while_the_chain_asks_far_too_much_nothing_is_signed_and_afterwards_it_is_paid_once(rich: Rig) -> None:
    recipient = rich.recipient()
    rich.demand(is_absurd=True)
    order = rich.order(recipient)
    rich.sign()
    rich.pass_time(PAUSE_S)
    rich.sign()
    assert (rows("SELECT count(*) FROM spends"), status(order)) == ([(0,)], "approved")

    rich.demand(is_absurd=False)
    rich.pass_time(PAUSE_S)
    rich.sign()
    rich.follow()
    assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")


@pytest.mark.rigs("solana")
def test_an_expired_payout_is_offered_again_for_more_and_paid_once(rich: Rig) -> None:
    recipient = rich.recipient()
    order = rich.order(recipient)
    rich.sign()
    rich.outlive()
    rich.catch_up()
    rich.follow()

    assert (rich.units_at(recipient), status(order)) == (rich.price, "confirmed")
    states = rows("SELECT s.state, (a.terms ->> 'price')::int FROM spends s JOIN spend_attempts a ON a.spend_id = s.id")
    least = min(price for _, price in states)
    assert sorted(states) == [("confirmed", 2 * least), ("dead", least)]
    assert rich.findings() == []


@pytest.mark.rigs("solana")
def test_an_expired_sweep_is_offered_again_for_more(rich: Rig) -> None:
    rich.pay(stored(rich.invoice()), rich.price)
    rich.advance(rich.network.maturity)
    network_fees.refresh_network_fees(rich.code)
    context.context().market.forget()
    sweep.keep_treasury(rich.code)
    rich.outlive()
    rich.catch_up()
    rich.follow()
    sweep.keep_treasury(rich.code)
    rich.follow()

    swept = rows(
        "SELECT s.state, (a.terms ->> 'price')::int FROM spends s JOIN spend_attempts a ON a.spend_id = s.id"
        " WHERE s.purpose = 'sweep'"
    )
    least = min(price for _, price in swept)
    assert sorted(swept) == [("confirmed", 2 * least), ("dead", least)]
    assert rich.findings() == []
