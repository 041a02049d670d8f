"""The version before runs on while this one runs: each reads the rows that the other writes."""

from __future__ import annotations

import pytest

from core.ids import uuid7
from models.db.base import execute, rows
from models.spends import rows as spends
from models.spends import unexplained
from tests.models.spends.test_rows import attempt, spend

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
