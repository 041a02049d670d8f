"""Each migration is applied once, by one process at a time, whole or not at all, and never edited afterwards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Timer
from typing import Any

import psycopg2
import pytest
from psycopg2 import errors

from cli.embedded.servers.postgres import Postgres
from models.db import migrate as migrations
from models.db.migrate import NO_TRANSACTION, ChangedMigrationError, available, migrate, pending

Files = list[tuple[str, str]]

ONE = ("0001_one.sql", "CREATE TABLE one (id integer);\nINSERT INTO one VALUES (1);\n")
TWO = ("0002_two.sql", "ALTER TABLE one ADD COLUMN share text DEFAULT '50 %' -- the last word")


@pytest.fixture
def url(postgres: Postgres) -> str:
    """Return the URL of an empty database."""
    with closing(psycopg2.connect(postgres.url)) as session, session.cursor() as cursor:
        session.autocommit = True
        cursor.execute("DROP DATABASE IF EXISTS empty WITH (FORCE)")
        cursor.execute("CREATE DATABASE empty")
    return postgres.database_url("empty")


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    """Return a copy of the migrations, to which a test adds."""
    there: Files = []
    monkeypatch.setattr(migrations, "available", lambda: there)
    return there


def query(url: str, sql: str) -> list[tuple[Any, ...]]:
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def test_files_are_numbered_and_in_order() -> None:
    names = [name for name, _ in available()]

    assert names == sorted(names)
    assert names[0] == "0001_gateway.sql"
    assert all(sql.strip() for _, sql in available())


def test_all_migrations_apply_to_an_empty_database_once(url: str) -> None:
    names = [name for name, _ in available()]

    assert pending(url) == names
    assert migrate(url) == names
    assert pending(url) == []
    assert migrate(url) == []
    assert query(url, "SELECT name FROM schema_migrations ORDER BY name") == [(name,) for name in names]


def test_later_files_are_applied_to_a_migrated_database(url: str, files: Files) -> None:
    files.append(ONE)
    assert migrate(url) == ["0001_one.sql"]
    files.append(TWO)

    assert pending(url) == ["0002_two.sql"]
    assert migrate(url) == ["0002_two.sql"]
    assert query(url, "SELECT id, share FROM one") == [(1, "50 %")]


def test_an_applied_file_must_not_change(url: str, files: Files) -> None:
    files.append(ONE)
    migrate(url)
    files[:] = [("0001_one.sql", ONE[1] + "-- a word more\n"), TWO]

    with pytest.raises(ChangedMigrationError, match=r"0001_one\.sql"):
        migrate(url)
    assert query(url, "SELECT count(*) FROM schema_migrations") == [(1,)]


def test_a_failing_file_is_rolled_back_and_stops_the_following_ones(url: str, files: Files) -> None:
    files[:] = [ONE, ("0002_bad.sql", "CREATE TABLE two (id integer);\nSELECT 1/0;\n"), ("0003_late.sql", "SELECT 1")]

    with pytest.raises(errors.DivisionByZero):
        migrate(url)
    assert query(url, "SELECT to_regclass('one'), to_regclass('two')") == [("one", None)]
    assert pending(url) == ["0002_bad.sql", "0003_late.sql"]

    files[1] = ("0002_bad.sql", "CREATE TABLE two (id integer)")
    assert migrate(url) == ["0002_bad.sql", "0003_late.sql"]


CONCURRENT = (
    "0003_index.sql",
    f"{NO_TRANSACTION}: writers go on meanwhile\n"
    "DROP INDEX CONCURRENTLY IF EXISTS one_by_id;\n"
    "CREATE INDEX CONCURRENTLY one_by_id\n    ON one (id); \n"
    "-- and another\n"
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS one_by_share ON one (share);\n-- no more\n",
)


def test_a_file_can_run_outside_a_transaction(url: str, files: Files) -> None:
    files[:] = [ONE, TWO, CONCURRENT]

    assert migrate(url) == ["0001_one.sql", "0002_two.sql", "0003_index.sql"]
    assert query(url, "SELECT count(*) FROM pg_indexes WHERE tablename = 'one'") == [(2,)]
    assert pending(url) == []


def test_a_failed_file_outside_a_transaction_runs_again_from_its_start(url: str, files: Files) -> None:
    name, sql = CONCURRENT
    files[:] = [ONE, TWO, (name, sql.replace("one (share)", "one (no_such)"))]
    with pytest.raises(errors.UndefinedColumn):
        migrate(url)
    assert pending(url) == [name]

    files[2] = CONCURRENT
    assert migrate(url) == [name]


def test_two_concurrent_migrations_apply_everything_once(url: str, files: Files) -> None:
    # Building an index waits for every older snapshot, such as that of the migration that waits for its turn.
    files[:] = [("0001_slow.sql", ONE[1] + "SELECT pg_sleep(0.3);\n"), TWO, CONCURRENT]

    with ThreadPoolExecutor(3) as pool:
        applied = list(pool.map(migrate, [url] * 3))

    assert sorted(map(len, applied)) == [0, 0, 3]
    assert query(url, "SELECT id FROM one") == [(1,)]


def test_a_migration_does_not_block_writers_for_long(url: str, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "LOCK_TIMEOUT_MS", 100)
    files.append(ONE)
    migrate(url)
    files.append(TWO)

    with closing(psycopg2.connect(url)) as reader, reader.cursor() as cursor:
        cursor.execute("SELECT * FROM one")
        patience = Timer(5.0, reader.close)
        patience.start()
        with pytest.raises(errors.LockNotAvailable):
            migrate(url)
        patience.cancel()

    assert migrate(url) == ["0002_two.sql"]


def until(name: str) -> Files:
    """Return the real migrations up to and including one."""
    return [file for file in available() if file[0][:4] <= name]


def test_deposits_of_other_networks_held_by_wallets_are_credited_by_the_migration(url: str, files: Files) -> None:
    files.extend(until("0059"))
    migrate(url)
    with closing(psycopg2.connect(url)) as session, session, session.cursor() as cursor:
        cursor.execute(
            """
            SET session_replication_role = replica;
            INSERT INTO wallets
                (id, merchant_id, currency, network, order_id, address_ordinal, address, fee_ppm, blocked_at)
                SELECT md5(name)::uuid, md5('m')::uuid, 'USDT', 'ethereum', name, 1, name, 0, blocked_at
                FROM (VALUES ('open', NULL), ('blocked', now()), ('refunded', NULL)) AS w (name, blocked_at);
            INSERT INTO deposits (id, network, txid, ordinal, currency, amount_units, address, sender, owner_kind,
                    owner_id, merchant_id, status, stray_reason, block_height, block_hash, block_time, seen_at,
                    refund_id, refund_units)
                SELECT gen_random_uuid(), 'bsc', name, '0', 'USDT', 1, name, '', kind, md5(name)::uuid,
                    md5('m')::uuid, 'confirmed', 'network', 1, '', now(), now(), refund_id,
                    CASE WHEN refund_id IS NOT NULL THEN 1 END
                FROM (VALUES ('open', 'wallet', NULL), ('blocked', 'wallet', NULL), ('sale', 'invoice', NULL),
                    ('refunded', 'wallet', md5('r')::uuid)) AS d (name, kind, refund_id);
            INSERT INTO chain_cursors (network, height, hash, block_time, head_height)
                SELECT code, 1, '', now(), 1 FROM unnest(ARRAY['ethereum', 'bsc']) AS n (code);
            """
        )
    files[:] = until("0060")

    migrate(url)

    assert query(url, "SELECT order_id FROM wallets WHERE is_credit_due") == [("open",)]
    assert query(url, "SELECT txid FROM deposits WHERE stray_reason IS NOT NULL") == [("sale",)]
    assert query(url, "SELECT count(DISTINCT (network, address)) FROM balance_probes") == [(6,)]


def test_a_merchants_own_fee_survives_the_migration(url: str, files: Files) -> None:
    files.extend(until("0060"))
    migrate(url)
    with closing(psycopg2.connect(url)) as session, session, session.cursor() as cursor:
        cursor.execute(
            "SET session_replication_role = replica;"
            "INSERT INTO merchants (id, owner_id, name, fee_ppm, fee_fixed_usd_cents) SELECT gen_random_uuid(),"
            " gen_random_uuid(), ppm || ' ' || cents, ppm, cents"
            " FROM (VALUES (15000, 30), (15000, 0), (7, 30)) AS m (ppm, cents)"
        )
    files[:] = until("0061")

    migrate(url)

    own = query(url, "SELECT own_fee_ppm, own_fee_fixed_usd_cents FROM merchants ORDER BY name")
    assert own == [(None, 0), (None, None), (7, None)]


def test_a_rule_co_signed_before_the_migration_names_its_co_signer(url: str, files: Files) -> None:
    files.extend(until("0100"))
    migrate(url)
    with closing(psycopg2.connect(url)) as session, session, session.cursor() as cursor:
        cursor.execute(
            """
            SET session_replication_role = replica;
            INSERT INTO split_rules (id, merchant_id, recipient_id, percent_ppm, title, set_by, cosigned_by)
                SELECT md5(set_by)::uuid, md5('m')::uuid, md5('r')::uuid, 100, '', set_by, cosigned_by
                FROM (VALUES ('one', ''), ('two', 'second'), ('spent', 'second')) AS r (set_by, cosigned_by);
            INSERT INTO split_shares (id, deposit_id, round, rule_id, merchant_id, recipient_id, currency, percent_ppm,
                    units, left_units, released_units, release_at, is_mature, set_by)
                SELECT gen_random_uuid(), gen_random_uuid(), 0, md5(set_by)::uuid, md5('m')::uuid, md5('r')::uuid,
                    'USDT', 100, 1, left_units, 1 - left_units, now(), true, set_by
                FROM (VALUES ('one', 1), ('two', 1), ('spent', 0), ('deleted', 1)) AS s (set_by, left_units);
            INSERT INTO payouts (id, merchant_id, order_id, kind, hold_reference, currency, network, address,
                    amount_units, fee_units, to_units, held_units, is_fee_on_top, status, source, created_by)
                SELECT md5(status)::uuid, md5('m')::uuid, 'autowithdraw:' || md5(status)::uuid, 'autowithdraw', status,
                    status, 'ethereum', '0x1', 1, 0, 1, 1, false, status, 'manual', 'pk_first'
                FROM unnest(ARRAY['approved', 'sent', 'cancelled', 'awaiting_cosign']) AS p (status);
            INSERT INTO withdrawal_rules (merchant_id, currency, network, address, threshold_units, is_enabled, set_by,
                    cosigned_by, payout_id)
                SELECT merchant_id, currency, network, address, 1, true, created_by,
                    CASE status WHEN 'awaiting_cosign' THEN '' ELSE 'pk_second' END, id FROM payouts;
            """
        )
    files[:] = until("0101")

    migrate(url)

    shares = query(url, "SELECT set_by, cosigned_by FROM split_shares ORDER BY set_by")
    assert shares == [("deleted", ""), ("one", ""), ("spent", ""), ("two", "second")]
    approvals = "SELECT p.status, a.principal FROM payout_approvals a JOIN payouts p ON p.id = a.payout_id ORDER BY 1"
    assert query(url, approvals) == [("approved", "pk_second"), ("sent", "pk_second")]


def test_quotes_that_expired_without_kept_rates_are_renewed_after_the_migration(url: str, files: Files) -> None:
    files.extend(until("0130"))
    migrate(url)
    with closing(psycopg2.connect(url)) as session, session, session.cursor() as cursor:
        cursor.execute(
            """
            SET session_replication_role = replica;
            INSERT INTO invoices (id, merchant_id, order_id, status, is_multi, price_currency, price_units,
                    pay_currency, network, payer_units, fee_ppm, fee_fixed_usd_cents, created_at, updated_at,
                    expires_at, rate_expires_at, requote_after)
                SELECT gen_random_uuid(), gen_random_uuid(), name, status, false, 'USD', 1, coin, network, units, 0, 0,
                    now(), now(), now() + interval '1 hour', now() + rate, now() + after
                FROM (VALUES
                    ('open, ran out', 'check', interval '-1 minute', NULL),
                    ('open, ran out and was put off', 'check', interval '-1 minute', interval '1 minute'),
                    ('open, holds', 'check', interval '5 minutes', NULL),
                    ('open, holds and was put off', 'check', interval '5 minutes', interval '1 minute'),
                    ('open, holds to its end', 'check', interval '1 hour', interval '1 minute'),
                    ('before a choice', 'select', interval '1 hour', NULL),
                    ('paid, was put off', 'paid', interval '-1 minute', interval '1 minute'),
                    ('expired, ran out', 'expired', interval '-1 minute', NULL)
                ) AS i (name, status, rate, after),
                LATERAL (SELECT 'BTC', 'bitcoin', 1 WHERE status <> 'select'
                    UNION ALL SELECT NULL, NULL, NULL WHERE status = 'select') AS c (coin, network, units);
            CREATE TABLE before AS SELECT order_id, requote_after FROM invoices;
            """
        )
    files[:] = until("0131")

    migrate(url)

    renewed = query(
        url,
        "SELECT order_id FROM invoices WHERE quoted_until > now() AND quoted_until <= now() + interval '10 seconds'"
        " ORDER BY 1",
    )
    assert renewed == [("open, ran out",), ("open, ran out and was put off",)]
    assert query(
        url,
        "SELECT order_id, quoted_until IS NOT DISTINCT FROM requote_after FROM invoices JOIN before USING (order_id)"
        " WHERE quoted_until IS NOT NULL OR order_id LIKE '%paid%' ORDER BY 1",
    ) == [("open, ran out", False), ("open, ran out and was put off", False), ("paid, was put off", True)]
