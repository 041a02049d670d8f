"""The version before runs on while this one runs: each reads the rows that the other writes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from core.ids import uuid7
from models.db.base import execute, rows
from models.spends import rows as spends
from models.spends import unexplained
from tests.models.builders import Chain
from tests.models.outcomes.many import Many
from tests.models.payouts.held import funded, payout, taken
from tests.models.spends.test_rows import attempt, read, spend

TERMS = {"gas_limit": 21_000, "price_units": 10**30, "tip_units": 3, "data_units": 5}


@pytest.fixture(autouse=True)
def _database(database: str) -> None:
    del database


def test_an_offer_of_the_older_version_is_read_as_terms() -> None:
    row = spend()
    execute(
        "INSERT INTO spend_attempts (spend_id, number, network, txid, raw, gas_limit, price_units, tip_units,"
        " data_units, is_void) VALUES (%s, 1, 'ethereum', '0xold', '', 21000, %s, 3, 5, false)",
        (row.id, 10**30),
    )

    newest, _ = spends.attempts_of(row.id)
    assert (newest.ceiling_units, newest.terms) == (21_000 * 10**30 + 5, TERMS)
    assert (newest.expires_at, newest.expires_height) == (None, None)


def test_the_older_version_reads_an_offer_of_this_one() -> None:
    row = spend()
    attempt(row, 1).but(terms=TERMS).write()

    assert rows("SELECT gas_limit, price_units, tip_units, data_units FROM spend_attempts WHERE number = 1") == [
        tuple(TERMS.values())
    ]


def test_the_older_version_reads_no_gas_from_another_familys_terms() -> None:
    row = spend()
    attempt(row, 1).but(terms={"satoshi_units": 9}, ceiling_units=900, expires_height=70).write()

    newest, _ = spends.attempts_of(row.id)
    assert (newest.terms, newest.ceiling_units, newest.expires_height) == ({"satoshi_units": 9}, 900, 70)
    assert (newest.gas_limit, newest.price_units, newest.tip_units, newest.data_units) == (0, 0, 0, 0)


def test_an_unknown_departure_of_the_older_version_has_terms() -> None:
    execute(
        "INSERT INTO unknown_spends (id, network, txid, sender, slot, recipient, currency, decimals, token_units,"
        " is_transfer, raw, gas_limit, price_units, tip_units, is_success, chain_fee_units)"
        " VALUES (%s, 'ethereum', '0xold', '0xs', 1, '0xr', 'ETH', 18, 1, true, '', 21000, 2, 1, true, 1)",
        (uuid7(),),
    )

    departure = unexplained.find("ethereum", "0xold")
    assert departure is not None
    assert departure.ceiling_units == 42_000
    assert departure.terms == {"gas_limit": 21_000, "price_units": 2, "tip_units": 1, "data_units": 0}


@pytest.mark.parametrize(
    "change", ["ceiling_units = 1", "terms = '{}'", "expires_height = 9", "expires_at = app_now()"]
)
def test_the_signed_terms_are_the_offered_ones(change: str) -> None:
    spend()
    with pytest.raises(Exception, match="spend_attempts"):
        execute(f"UPDATE spend_attempts SET {change}")


# Outputs ------------------------------------------------------------------------------------------------------

STATES = ["signed", "sent", "mined", "confirmed", "failed", "dead"]


def old_spend(**columns: Any) -> UUID:
    """Write a spend as the version before does."""
    row = {
        "id": uuid7(), "network": "ethereum", "purpose": "gas", "payout_id": None, "sender": "0xs", "recipient": "0xr",
        "currency": "ETH", "contract": None, "decimals": 18, "memo": "note", "token_units": 7, "slot": 3,
        "state": "signed",
    } | columns  # fmt: skip
    execute(f"INSERT INTO spends ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", tuple(row.values()))
    return UUID(str(row["id"]))


def test_a_spend_of_the_older_version_has_one_output() -> None:
    (output,) = read(old_spend()).outputs
    assert (output.place, output.payout_id, output.recipient, output.token_units, output.memo) == (
        0, None, "0xr", 7, "note",
    )  # fmt: skip
    assert (output.state, output.effect, output.lost_units, output.problem) == ("open", None, 0, "")


@pytest.mark.parametrize("state", STATES)
def test_an_output_follows_the_older_versions_changes_to_its_spend(state: str) -> None:
    ended = state if state in {"confirmed", "failed", "dead"} else "open"
    assert read(old_spend(state=state)).outputs[0].state == ended
    spend_id = old_spend(slot=4)
    execute(
        "UPDATE spends SET state = %s, mined_txid = '0x1', mined_height = 7, mined_hash = '0xb', effect = 'other',"
        " left_units = 5, arrived_units = 4, is_success = false, problem = 'less', lost_units = 3, charged_units = 2"
        " WHERE id = %s",
        (state, spend_id),
    )
    (output,) = read(spend_id).outputs
    assert (output.state, output.effect, output.left_units, output.arrived_units) == (ended, "other", 5, 4)
    assert (output.problem, output.lost_units, output.charged_units) == ("less", 3, 2)


def test_a_reorg_noted_by_the_older_version_clears_the_outputs_effect() -> None:
    spend_id = old_spend(state="mined", effect="other", left_units=5, arrived_units=4, problem="less")
    execute(
        "UPDATE spends SET state = 'sent', effect = NULL, left_units = NULL, arrived_units = NULL, problem = ''"
        " WHERE id = %s",
        (spend_id,),
    )
    (output,) = read(spend_id).outputs
    assert (output.state, output.effect, output.left_units, output.arrived_units, output.problem) == (
        "open", None, None, None, "",
    )  # fmt: skip


def test_a_change_that_keeps_the_spends_end_keeps_the_outputs() -> None:
    """A confirmed spend leaves its block, enters another and is settled, and stays confirmed."""
    spend_id = old_spend(state="confirmed", effect="exact")
    execute("UPDATE spends SET effect = NULL WHERE id = %s", (spend_id,))
    execute("UPDATE spends SET effect = 'exact', settled_at = app_now(), lost_units = 1 WHERE id = %s", (spend_id,))
    (output,) = read(spend_id).outputs
    assert (output.state, output.effect, output.lost_units) == ("confirmed", "exact", 1)


def test_the_older_version_reads_a_single_output_in_the_spend() -> None:
    row = spend()
    assert rows("SELECT recipient, payout_id, memo FROM spends WHERE id = %s", (row.id,)) == [("0xr", None, "")]


def test_the_older_version_reads_no_output_of_several() -> None:
    many = Many(Chain())
    assert rows("SELECT recipient, payout_id, memo, token_units FROM spends") == [(None, None, "", 3 * 10**7)]
    alone = many.orders[0]
    many.bury()
    many.sign(alone)
    assert rows("SELECT recipient, payout_id FROM spends WHERE state <> 'dead'") == [(alone.address, alone.id)]


def test_the_two_versions_pay_a_payout_once() -> None:
    order = taken(payout(funded()), "approved", "broadcasting")
    with pytest.raises(Exception, match="_by_payout"):
        old_spend(purpose="payout", payout_id=order.id, slot=9)
