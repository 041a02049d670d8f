"""Migrates a gateway of the version before, with payouts in every state, and runs it on.

Each row that this version wrote is copied into a database of the older schema, in the older version's columns. After
the migration, the columns left out have to hold the same values again.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import psycopg2
import pytest
from psycopg2.extensions import connection

from cli.embedded.servers.postgres import Postgres
from core.ids import uuid7
from models.db import base
from models.db import migrate as migrations
from models.db.base import execute, rows, transaction
from models.invariants import money_in
from models.outcomes import settlements
from models.payouts import queue as payout_queue
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends import tracking
from models.spends import unknown as unknown_spends
from models.treasury import own_addresses, reconciliation
from tests.models.builders import CATALOGUE, Chain
from tests.models.outcomes.many import Many
from tests.models.payouts.held import HOT_WALLET
from tests.models.spends.test_rows import read
from tests.models.spends.test_signing import unknown
from tests.models.treasury.builders import pin_hot, spend

# The last migration of the version before this one.
RELEASED: Final = "0061"
DEPOSIT: Final = "0x" + "dd" * 20
# The values that the migrations since then have to restore.
ANEW: Final = {
    "spend_outputs": "SELECT spend_id, place, payout_id, recipient, token_units, memo, state, effect, left_units,"
    " arrived_units, lost_units, charged_units, problem FROM spend_outputs ORDER BY 1, 2",
    "spend_movements": "SELECT spend_id, network, address, currency, decimals, units, height FROM spend_movements"
    " ORDER BY 1, 3, 4",
    # Not the end of its window: the older version had none.
    "spend_attempts": "SELECT spend_id, number, network, txid, raw, price_units, tip_units, gas_limit, data_units,"
    " ceiling_units, terms, created_at, sent_at, last_error, is_void, mark FROM spend_attempts ORDER BY 1, 2",
    "unknown_spends": "SELECT * FROM unknown_spends ORDER BY id",
    "spends": "SELECT * FROM spends ORDER BY id",
}


def tell() -> dict[str, list[tuple[Any, ...]]]:
    return {name: rows(query) for name, query in ANEW.items()}


@pytest.fixture
def story(database: str) -> dict[str, list[tuple[Any, ...]]]:
    """Leave payouts in every state, and moves between our own addresses; return their rows."""
    del database
    pin_hot(address=HOT_WALLET)
    chain = Chain()
    for _ in range(4):
        _orders(chain)
    block = (chain.height, chain._hash())
    spend(sender=HOT_WALLET, recipient=DEPOSIT, token_units=9, mined=block, effect="exact", chain_fee_units=3,
          slot=1_000)  # fmt: skip
    token = CATALOGUE.pairs["USDT", "ethereum"].contract
    spend(purpose="sweep", sender=DEPOSIT, recipient=HOT_WALLET, currency="USDT", contract=token, decimals=6,
          token_units=3, mined=block, effect="exact", chain_fee_units=2)  # fmt: skip
    spend(purpose="sweep", sender=DEPOSIT, recipient=HOT_WALLET, token_units=1)
    spend(purpose="filler", sender=HOT_WALLET, recipient=HOT_WALLET, token_units=0, state="dead", slot=1_001)
    with transaction():
        assert unknown_spends.note(unknown())
    assert money_in.check() == []
    return tell()


def _orders(chain: Chain) -> None:
    """Take three payouts each to another state, one state further with each call."""
    many = Many(chain, is_signed=False)
    for order, state in zip(many.orders, _STATES[_count() :], strict=False):
        _take(many, order, state)


_STATES: Final = (
    "approved", "signed", "mined", "sent", "confirmed", "failed", "dead", "other", "settled", "failed", "paid", "given",
)  # fmt: skip


def _count() -> int:
    [(count,)] = rows("SELECT count(*) - 3 FROM payouts")
    return int(count)


def _take(many: Many, order: Any, state: str) -> None:
    if state == "approved":
        return
    many.spend_id = many.sign(order)
    if state == "dead":
        many.bury()
    if state in {"signed", "sent", "dead"}:
        return
    many.chain.mine()
    many.include({"failed": "none", "other": "other", "paid": "other", "given": "other"}.get(state, "exact"))  # type: ignore[arg-type]
    if state == "mined":
        return
    many.chain.mature()
    many.ripen()
    if state == "settled":
        many.chain.mine(tracking.WATCHED_ON_BLOCKS)
        many.ripen()
    if state in {"paid", "given"}:
        (unclear,) = settlements.listing(CATALOGUE, order.id)
        with transaction():
            settlements.settle(CATALOGUE, unclear, "paid" if state == "paid" else "failed", settled_by="test")


@pytest.fixture
def older(postgres: Postgres, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[connection]:
    """Make a database of the older schema."""
    del database
    with closing(psycopg2.connect(postgres.url)) as session, session.cursor() as cursor:
        session.autocommit = True
        cursor.execute("DROP DATABASE IF EXISTS older WITH (FORCE)")
        cursor.execute("CREATE DATABASE older")
    url, files = postgres.database_url("older"), migrations.available()
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "available", lambda: [each for each in files if each[0] < RELEASED + "_z"])
        assert migrations.migrate(url)[-1].startswith(RELEASED)
    with closing(psycopg2.connect(url)) as session:
        session.autocommit = True
        yield session


def copy(older: connection) -> None:
    """Copy all rows of the test's database into the older one, in the columns that it has."""
    newer = base.db.connection()
    with older.cursor() as target, newer.cursor() as source:
        target.execute("SET session_replication_role = replica")
        target.execute(
            "SELECT table_schema || '.' || table_name, string_agg(column_name, ', ' ORDER BY ordinal_position)"
            " FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)"
            " WHERE table_schema IN ('public', 'signer') AND table_type = 'BASE TABLE' AND is_generated = 'NEVER'"
            " AND table_name <> 'schema_migrations' GROUP BY 1"
        )
        tables = target.fetchall()
        target.execute(f"TRUNCATE {', '.join(table for table, _ in tables)}")
        for table, columns in tables:
            kept = io.BytesIO()
            named = columns if table != "public.invoices" else columns.replace("requote_after", "quoted_until")
            source.copy_expert(f"COPY (SELECT {named} FROM {table}) TO STDOUT", kept)
            kept.seek(0)
            target.copy_expert(f"COPY {table} ({columns}) FROM STDIN", kept)
        target.execute("SET session_replication_role = origin")


def upgrade(older: connection, postgres: Postgres) -> None:
    """Migrate the older database and connect this process to it."""
    copy(older)
    url = postgres.database_url("older")
    assert migrations.migrate(url)[0] > RELEASED
    base.connect(url)


def test_migrated_rows_equal_those_that_this_version_wrote(
    story: dict[str, list[tuple[Any, ...]]], older: connection, postgres: Postgres
) -> None:
    upgrade(older, postgres)
    told = tell()
    for name, before in story.items():
        assert told[name] == before, name
    assert money_in.check() == []


@pytest.mark.usefixtures("story")
def test_the_gateway_runs_on_after_the_migration(older: connection, postgres: Postgres) -> None:
    """No payout is signed twice, spends under way are followed, and held money stays held."""

    def seen() -> list[object]:
        return [
            [each.id for each in payout_queue.due(CATALOGUE.networks["ethereum"], limit=99)],
            [each.id for each in spends.to_watch("ethereum", limit=99)],
            spend_reads.promised("ethereum", HOT_WALLET, CATALOGUE.pairs["USDT", "ethereum"].contract),
            spend_reads.unclear_by_network(),
            settlements.listing(CATALOGUE),
            reconciliation.read_books("ethereum"),
            own_addresses.moved_native_units("ethereum", DEPOSIT, "ETH", height=10**9),
            spends.next_slot("ethereum", HOT_WALLET),
        ]

    before = seen()
    upgrade(older, postgres)
    assert seen() == before
    for payout_id, state in rows("SELECT payout_id, state FROM spends WHERE state <> 'dead' AND payout_id IS NOT NULL"):
        with pytest.raises(Exception, match="_by_payout"):
            execute(
                "INSERT INTO spend_outputs (spend_id, place, payout_id, recipient, token_units)"
                " SELECT id, 9, %s, '0xr', 1 FROM spends LIMIT 1",
                (payout_id,),
            )
        found = spends.of_payout(payout_id)
        assert found is not None
        assert found.state == state


# The statements of the version before, word for word.
_INSERT: Final = (
    "INSERT INTO spends (id, network, purpose, payout_id, sender, key_ordinal, recipient, currency, contract, decimals,"
    " memo, token_units, slot, state, signed_height) VALUES (%s, 'ethereum', 'gas', NULL, %s, NULL, '0xdeposit', 'ETH',"
    " NULL, 18, '', 7, %s, 'signed', (SELECT height FROM chain_cursors WHERE network = 'ethereum'))"
)
_COUNT_ATTEMPT: Final = (
    "UPDATE spends SET attempts = attempts + 1, bumped_at = CASE WHEN attempts > 0 THEN app_now() END"
    " WHERE id = %s AND attempts = 0 AND settled_at IS NULL AND mined_txid IS NULL"
)
_ATTEMPT: Final = (
    "INSERT INTO spend_attempts (spend_id, number, network, txid, raw, price_units, tip_units, gas_limit, data_units,"
    " is_void) VALUES (%s, 0, 'ethereum', '0x7', 'raw', 5, 1, 21000, 0, false)"
)
_MINED: Final = (
    "UPDATE spends SET state = CASE WHEN state IN ('signed', 'sent') THEN 'mined' ELSE state END,"
    " mined_txid = %s, mined_height = %s, mined_hash = %s, effect = %s, left_units = %s, arrived_units = %s,"
    " chain_fee_units = %s, is_success = %s, problem = %s, mined_at = app_now() WHERE id = %s AND settled_at IS NULL"
)
_TAKEN_OUT: Final = (
    "UPDATE spends SET state = CASE WHEN state = 'mined' THEN 'sent' ELSE state END, mined_txid = NULL,"
    " mined_height = NULL, mined_hash = NULL, is_success = NULL, effect = NULL, left_units = NULL,"
    " arrived_units = NULL, chain_fee_units = NULL, problem = '', mined_at = NULL WHERE id = %s"
)
_FINISHED: Final = (
    "UPDATE spends SET state = %s, ended_at = app_now(), booked_fee_units = 0, lost_units = 0,"
    " settled_at = CASE WHEN %s = 'confirmed' THEN NULL ELSE app_now() END WHERE id = %s AND settled_at IS NULL"
)


def test_the_older_version_runs_on_while_this_one_runs(database: str) -> None:
    """This version reads at every step what the older one wrote."""
    del database
    pin_hot(address=HOT_WALLET)
    spend_id = uuid7()
    execute(_INSERT, (spend_id, HOT_WALLET, 3))
    assert execute(_COUNT_ATTEMPT, (spend_id,)) == 1
    execute(_ATTEMPT, (spend_id,))
    assert spend_reads.promised("ethereum", HOT_WALLET, None).gas_units == 105_000

    def moved() -> list[tuple[Any, ...]]:
        return rows("SELECT address, units, height FROM spend_movements WHERE spend_id = %s ORDER BY 1", (spend_id,))

    def output() -> tuple[Any, ...]:
        (found,) = read(spend_id).outputs
        return found.state, found.effect, found.problem

    execute(_MINED, ("0x7", 7, "0xb", "exact", None, None, 4, True, "", spend_id))
    assert (output(), moved()) == (("open", "exact", ""), [(HOT_WALLET, -11, 7), ("0xdeposit", 7, 7)])
    execute(_MINED, ("0x7", 8, "0xc", "none", None, None, 5, False, "reverted", spend_id))
    assert (output(), moved()) == (("open", "none", "reverted"), [(HOT_WALLET, -5, 8)])
    execute(_TAKEN_OUT, (spend_id,))
    assert (output(), moved()) == (("open", None, ""), [])
    execute(_MINED, ("0x7", 9, "0xd", "exact", None, None, 0, True, "", spend_id))
    execute(_FINISHED, ("confirmed", "confirmed", spend_id))
    assert (output(), moved()) == (("confirmed", "exact", ""), [(HOT_WALLET, -7, 9), ("0xdeposit", 7, 9)])
    assert money_in.check() == []
