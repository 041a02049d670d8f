"""The database grants each process exactly what it needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest
from psycopg2 import sql
from psycopg2.extensions import connection

from devstack.servers.postgres import Postgres
from models.db import base, grants, rights
from models.db.grants import READ_ONLY, ROLES, SIGNER, WEB, WORKERS, Grant
from models.db.migrate import MovedClockError, migrate
from models.ledger import debts
from tests.models.builders import Chain, merchant
from tests.models.invoices.builders import invoice, paid


@pytest.fixture
def owner(database: str) -> Iterator[connection]:
    session = psycopg2.connect(database)
    session.autocommit = True
    yield session
    session.close()


@contextlib.contextmanager
def acting_as(role: str) -> Iterator[None]:
    """Let this thread's connection act as a role."""
    base.execute(f"SET ROLE {role}")
    try:
        yield
    finally:
        base.execute("RESET ROLE")


def refused(role: str, *statements: str) -> None:
    for statement in statements:
        with acting_as(role), pytest.raises(Exception, match="permission denied"):
            base.execute(statement)


SPEND: str = "INSERT INTO spend_attempts SELECT * FROM spend_attempts WHERE false"


@pytest.mark.usefixtures("database")
def test_only_the_signer_writes_its_counters_and_attempts() -> None:
    count = "INSERT INTO signer.spent VALUES ('ethereum', app_now(), 1)"
    forget = "UPDATE signer.spent SET usd_cents = 0"
    for role in (WEB, WORKERS, READ_ONLY):
        refused(role, count, forget, "DELETE FROM signer.spent", SPEND, "UPDATE spend_attempts SET last_error = ''")
        refused(role, "UPDATE spends SET state = 'dead'", "INSERT INTO spends SELECT * FROM spends WHERE false")
        refused(role, "INSERT INTO treasury_addresses VALUES ('ethereum', 'hot', '0x1')")
        refused(role, "INSERT INTO pool_addresses VALUES ('evm', 1, '0x1')")

    with acting_as(SIGNER):
        base.execute(count)
        base.execute(forget)
        base.execute(SPEND)
    refused(SIGNER, "DELETE FROM signer.spent", "DELETE FROM spend_attempts")


@pytest.mark.usefixtures("database")
def test_ledger_rows_are_inserted_and_changed_by_no_role() -> None:
    paid(Chain(), invoice())
    change = ("UPDATE ledger_transfers SET units = 1", "DELETE FROM ledger_transfers", "TRUNCATE ledger_transfers")
    columns = "reference, leg, debit_account, credit_account, currency, units"
    insert = f"INSERT INTO ledger_transfers ({columns}) SELECT {columns} FROM ledger_transfers WHERE false"
    for role in ROLES:
        refused(role, *change)
    refused(WEB, insert)
    refused(READ_ONLY, insert)
    # The owner neither, as long as it keeps the trigger.
    for statement in change:
        with pytest.raises(Exception, match="append-only"):
            base.execute(statement)


@pytest.mark.usefixtures("database")
def test_an_account_may_be_locked_but_not_changed() -> None:
    paid(Chain(), invoice())
    for role in (WORKERS, SIGNER):
        with acting_as(role):
            base.execute("SELECT 1 FROM accounts FOR NO KEY UPDATE")
        refused(role, "UPDATE accounts SET currency = 'USDC'", "UPDATE accounts SET holder = gen_random_uuid()")
        with acting_as(role), pytest.raises(Exception, match="can only be updated to DEFAULT"):
            base.execute("UPDATE accounts SET id = 7")


@pytest.mark.usefixtures("database")
def test_the_signer_inserts_debtors_and_deletes_none() -> None:
    shop = merchant()
    with acting_as(SIGNER):
        debts.note(shop, "USDT")
    assert debts.due(10) == [(shop, "USDT")]
    refused(SIGNER, "DELETE FROM debtors", "UPDATE debtors SET looked_at = app_now()")


@pytest.mark.usefixtures("database")
def test_only_the_operator_changes_fees_of_merchants_and_keys() -> None:
    for role in ROLES:
        refused(role, "UPDATE merchants SET own_fee_ppm = 0", "INSERT INTO api_keys SELECT * FROM api_keys")
        refused(
            role, "INSERT INTO merchants SELECT * FROM merchants", "SELECT * FROM owners"
        ) if role != READ_ONLY else 0


@pytest.mark.usefixtures("database")
def test_the_read_only_role_reads_no_sealed_secret_and_no_response() -> None:
    with acting_as(READ_ONLY):
        base.rows("SELECT * FROM invoices, ledger_transfers, signer.spent")
    refused(READ_ONLY, *(f"SELECT * FROM {table}" for table in ("api_keys", "webhook_endpoints", "calls", "emails")))


@pytest.mark.usefixtures("database")
def test_the_signer_reads_revocations_and_approvals_but_no_secret() -> None:
    with acting_as(SIGNER):
        base.rows("SELECT public_id, revoked_at FROM api_keys")
        base.rows("SELECT payout_id, principal FROM payout_approvals")
    refused(SIGNER, "SELECT * FROM api_keys", "SELECT secret_box FROM api_keys")
    refused(SIGNER, "INSERT INTO payout_approvals SELECT * FROM payout_approvals", "DELETE FROM payout_approvals")


@pytest.mark.usefixtures("database")
def test_only_the_clock_tool_moves_the_clock() -> None:
    for role in ROLES:
        refused(role, "UPDATE app_clock SET ahead = '1 hour'", "DELETE FROM app_clock", "TRUNCATE app_clock")
        with acting_as(role):
            assert base.app_now()
    base.execute("UPDATE app_clock SET ahead = '1 hour'")


def test_no_role_moves_a_production_clock(database: str) -> None:
    assert migrate(database, is_production=True) == []
    assert migrate(database, is_production=True) == [], "again, at the next release"

    for statement in (
        "UPDATE app_clock SET ahead = '1 second'",
        "UPDATE app_clock SET is_real = false",
        "DELETE FROM app_clock",
        "TRUNCATE app_clock",
        "INSERT INTO app_clock (only_row) VALUES (true) ON CONFLICT (only_row) DO UPDATE SET ahead = '1 second'",
    ):
        with pytest.raises(Exception, match="its clock is the real one"):
            base.execute(statement)


def test_a_database_whose_clock_was_moved_is_refused_in_production(database: str) -> None:
    base.execute("UPDATE app_clock SET ahead = '1 second'")
    with pytest.raises(MovedClockError):
        migrate(database, is_production=True)


def test_every_table_of_the_schema_has_its_grants(owner: connection) -> None:
    assert grants.unlisted(owner) == []
    with owner.cursor() as cursor:
        cursor.execute("CREATE TABLE forgotten (id integer GENERATED ALWAYS AS IDENTITY)")
        cursor.execute("CREATE SEQUENCE signer.overlooked")
        cursor.execute("CREATE VIEW looked_at AS SELECT 1 AS one")
    assert grants.unlisted(owner) == ["forgotten", "looked_at", "signer.overlooked"]


def test_there_are_no_grants_for_missing_tables(owner: connection) -> None:
    assert {grant.table for grant in grants.wanted()} <= grants.existing(owner)


def test_migrating_restores_changed_grants(database: str, owner: connection) -> None:
    with owner.cursor() as cursor:
        cursor.execute("GRANT UPDATE, TRUNCATE ON ledger_transfers TO sluice_web")
        cursor.execute("GRANT UPDATE (units) ON balances TO sluice_web")
        cursor.execute("REVOKE INSERT ON calls FROM sluice_web")
        cursor.execute("REVOKE USAGE ON SCHEMA signer FROM sluice_signer")
    assert grants._present(owner) != grants.wanted()

    migrate(database)

    assert grants._present(owner) == grants.wanted()
    with acting_as(SIGNER):
        base.rows("SELECT * FROM signer.spent")


def test_databases_of_one_server_create_the_roles_concurrently(postgres: Postgres) -> None:
    names = [f"at_once_{number}" for number in range(4)]
    with contextlib.closing(psycopg2.connect(postgres.url)) as session, session.cursor() as cursor:
        session.autocommit = True
        for name in names:
            cursor.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
            cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    with ThreadPoolExecutor(len(names)) as pool:
        outcomes = list(pool.map(lambda name: migrate(postgres.database_url(name)), names))

    assert all(outcomes)
    for name in names:
        with contextlib.closing(psycopg2.connect(postgres.database_url(name))) as session:
            assert grants._present(session) == grants.wanted()


def test_a_user_that_may_not_create_roles_still_migrates(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a rented server, where no such role exists and none can be created."""
    strange = ("nowhere_web", "nowhere_signer")
    monkeypatch.setattr(grants, "ROLES", (*strange, "nowhere_workers", "nowhere_readonly"))
    monkeypatch.setattr(rights, "ROLES", (*strange, "nowhere_workers", "nowhere_readonly"))
    monkeypatch.setattr(grants, "_SCHEMA_READERS", {"public": strange, "signer": strange})
    with contextlib.closing(psycopg2.connect(postgres.url)) as session, session.cursor() as cursor:
        session.autocommit = True
        cursor.execute("DROP DATABASE IF EXISTS rented WITH (FORCE)")
        cursor.execute("DROP ROLE IF EXISTS tenant")
        cursor.execute("CREATE ROLE tenant LOGIN PASSWORD 'tenant' NOCREATEROLE")
        cursor.execute("CREATE DATABASE rented OWNER tenant")
    url = postgres.database_url("rented")
    url = f"postgresql://tenant:tenant@{url.partition('@')[2]}"

    assert migrate(url)

    base.connect(url)
    assert rights.missing_roles() == [*strange, "nowhere_workers", "nowhere_readonly"]
    base.close()


def test_a_grant_is_parsed_from_its_letters() -> None:
    assert {g for g in grants.wanted() if g.table == "accounts"} == {
        Grant("accounts", "", WEB, "SELECT"),
        Grant("accounts", "", READ_ONLY, "SELECT"),
        *(Grant("accounts", "", role, verb) for role in (WORKERS, SIGNER) for verb in ("SELECT", "INSERT")),
        *(Grant("accounts", "id", role, "UPDATE") for role in (WORKERS, SIGNER)),
    }
