"""Lists each process's privileges on each table; `sluice migrate` applies them at its end.

The owner of the tables migrates, and runs operators' commands. Every process has a login of its own that is a member of
one role below and owns nothing. Only the owner may use a table that is not listed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from psycopg2.extensions import connection

from core.catalogue.families import TRAITS

WEB: Final = "sluice_web"
WORKERS: Final = "sluice_workers"
SIGNER: Final = "sluice_signer"
READ_ONLY: Final = "sluice_readonly"
ROLES: Final = (WEB, WORKERS, SIGNER, READ_ONLY)
SCHEMAS: Final = ("public", "signer")
# The roles that may use each schema.
_SCHEMA_READERS: Final = {"public": ROLES, "signer": (SIGNER, READ_ONLY)}

_WORDS: Final = {"r": "SELECT", "i": "INSERT", "u": "UPDATE", "d": "DELETE", "n": "USAGE"}
_LETTER: Final = re.compile(r"([riudn])(?:\(([\w,]+)\))?")

# One per family: they number its addresses.
SEQUENCES: Final = frozenset(f"address_claims_{family}" for family in TRAITS)

# By table: web, workers, signer. r reads, i inserts, u updates, d deletes, n draws numbers; brackets limit a privilege
# to columns. A role that locks rows needs u on some column: if it changes nothing, on one that cannot change.
_TABLES: Final[dict[str, tuple[str, str, str]]] = {
    "accepted_methods": ("r", "rid", "r"),
    "accounts": ("r", "riu(id)", "riu(id)"),
    "address_chunks": ("r", "r", "ri"),
    **dict.fromkeys(SEQUENCES, ("r", "rn", "rnu")),
    "address_marks": ("", "riud", "rud"),
    "address_owners": ("r", "ri", "r"),
    "address_returns": ("r", "riud", "riu"),
    # The signer reads which keys are revoked, but no sealed secret.
    "api_keys": ("r", "r", "r(public_id,revoked_at)"),
    # Moved by `sluice clock` alone, in the owner's name.
    "app_clock": ("r", "r", "r"),
    "attempts_seen": ("", "riud", "r"),
    "audit_checkpoint": ("r", "ru", "r"),
    "audit_sums": ("r", "riu", ""),
    "balance_probes": ("", "riu", ""),
    "balance_snapshots": ("", "rid", ""),
    "balances": ("r", "riu", "riu"),
    "batch_items": ("r", "riud", ""),
    "batches": ("r", "riud", ""),
    "calls": ("ri", "riud", ""),
    "chain_blocks": ("", "riud", "r"),
    "chain_cursors": ("r", "riu", "r"),
    # The scan alone records what chains took.
    "charges": ("r", "riud", "r"),
    "clock_mark": ("", "riu", ""),
    # The scan records coins in blocks; the signer records which spend holds one.
    "coins": ("r", "riu", "ru(held_by,held_number)"),
    # Only the signer may record another database as the one to sign from.
    "database_looks": ("", "r", "ru"),
    "database_marks": ("", "ri", "riu"),
    "debtors": ("", "riud", "ri"),
    "deposit_quorums": ("r", "riu", "r"),
    "deposits": ("r", "riu", "ru"),
    "discounts": ("r", "rid", "r"),
    # The signer ends refunds, after which a payment may be paid.
    "emails": ("", "riud", "ri"),
    # Events are never changed.
    "invoice_events": ("r", "ri", "ri"),
    "invoices": ("r", "riu", "ru"),
    # The signer settles payments too, and ends their quotes.
    "kept_rates": ("r", "rid", "r"),
    # Written once and never changed, by no role.
    "ledger_scales": ("r", "ri", "ri"),
    "ledger_transfers": ("r", "ri", "ri"),
    "liquidity_alarms": ("", "riu", ""),
    "maturing_credits": ("r", "riu(deposit_id)d", "ri"),
    "merchant_logos": ("r", "", ""),
    "merchants": (
        "r",
        "ru(terms_version,accuracy_ppm,accuracy_enabled,ip_allowlist,is_payout_fee_on_top,is_split_enabled,"
        "split_hold_hours)",
        "r",
    ),
    "network_fees": ("r", "riu", "r"),
    # Only commands write it, in the owner's name.
    "operator_acts": ("", "", ""),
    # A web process sees only that there are some.
    "owner_emails": ("r(owner_id)", "r", ""),
    "owners": ("", "", ""),
    "payment_links": ("r", "riu(is_active,updated_at)", "r"),
    # The signer reads who approved a payout.
    "payout_approvals": ("r", "ri", "r(payout_id,principal)"),
    "payout_freezes": ("r", "riu", "riud"),
    "payout_links": ("r", "riud", ""),
    # An operator's decision how a payout ended.
    "payout_settlements": ("", "", ""),
    "payouts": ("r", "riu", "ru"),
    "personal_transfers": ("r", "ri", ""),
    "pool_addresses": ("r", "r", "ri"),
    # A quote is deleted if it was written while the clock was ahead, and has not begun.
    "quotes": ("r", "rid", "ri"),
    "process_counts": ("riu", "riud", "riu"),
    "provider_looks": ("r", "riu", ""),
    "rate_sources": ("", "riu", ""),
    "rates": ("r", "riu", "r"),
    "reconciliations": ("r", "riu", ""),
    "sanction_verdicts": ("", "rd", "riu"),
    "schema_migrations": ("r", "r", "r"),
    # The signer's own counts: no other role can write the rows that limit what it lets leave.
    "signer.counted": ("", "", "riu"),
    "signer.spent": ("", "", "riu"),
    "signer_states": ("r", "r", "riud"),
    "signing_stops": ("r", "riu", "riud"),
    # The signer settles payments too.
    "sightings": ("r", "riud", "r"),
    "spend_accounts": ("", "", "riu"),
    # The web must not read signed bytes.
    "spend_attempts": ("r(network,txid,spend_id)", "r", "riu"),
    "spend_movements": ("r", "r", "rid"),
    "spend_outputs": ("r", "r", "riu"),
    "spends": ("r", "r", "riu"),
    "split_earnings": ("r", "riu", ""),
    "split_rules": ("r", "riud", "r"),
    # The signer ends refunds, and settles their payments.
    "split_shares": ("r", "riu", "riu"),
    "split_takes": ("r", "ri", "r"),
    "treasury_addresses": ("r", "r", "riu"),
    "treasury_moves": ("r", "r", "r"),
    "treasury_topups": ("r", "riu", "r"),
    "treasury_walks": ("", "riu", "riu"),
    # An operator's decision about a loss.
    "treasury_writeoffs": ("r", "r", "r"),
    "unexplained_departures": ("r", "riu", "ru"),
    "unwitnessed_credits": ("", "riud", ""),
    "wallets": ("r", "riu", "ru"),
    "webhook_deliveries": ("r", "riu", "ri"),
    "webhook_endpoints": ("r", "riu", "r"),
    "withdrawal_rules": ("r", "riu", ""),
    "withdrawal_walk": ("", "ru", ""),
    # A web process that cannot write is not ready.
    "write_mark": ("ru(written_at)", "ru(written_at)", "r"),
}
# Tables with sealed secrets, or answers that held some; the read-only role may not read them.
_SEALED: Final = frozenset({"api_keys", "calls", "emails", "webhook_endpoints"})


class Grant(NamedTuple):
    """One privilege of one role. column is '' if it is on the whole table."""

    table: str
    column: str
    role: str
    privilege: str


def wanted() -> set[Grant]:
    """Return every grant of the list above."""
    return {grant for table in _TABLES for grant in _of(table)}


def _of(table: str) -> Iterator[Grant]:
    reader = "" if table in _SEALED else "r"
    for role, letters in zip(ROLES, (*_TABLES[table], reader), strict=True):
        for letter, columns in _LETTER.findall(letters):
            for column in columns.split(","):
                yield Grant(table, column, role, _WORDS[letter])


def apply(session: connection) -> list[str]:
    """Create the roles and apply the wanted grants; return the roles that this user may not create.

    A role belongs to the whole server, so another database's migration may be creating it now. If a role is missing,
    its grants are left out, and the next run tries again.
    """
    with session.cursor() as cursor:
        for role in ROLES:
            cursor.execute(_CREATE_ROLE.format(role=role))
        cursor.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", (list(ROLES),))
        roles = {row[0] for row in cursor.fetchall()}
        cursor.execute("SELECT nspname FROM pg_namespace WHERE nspname = ANY(%s)", (list(SCHEMAS),))
        schemas = sorted(row[0] for row in cursor.fetchall())
        there = existing(session)
        aim = {grant for grant in wanted() if grant.role in roles and grant.table in there}
        present = _present(session)
        statements = [_statement("REVOKE", grant, "FROM") for grant in sorted(present - aim)]
        statements += [_statement("GRANT", grant, "TO") for grant in sorted(aim - present)]
        statements += [
            f"GRANT USAGE ON SCHEMA {schema} TO {', '.join(readers)}"
            for schema in schemas
            if (readers := sorted(roles.intersection(_SCHEMA_READERS[schema])))
        ]
        if statements:
            cursor.execute("BEGIN;\n" + ";\n".join(statements) + ";\nCOMMIT")
    return sorted(set(ROLES) - roles)


# If the user may not create roles (in a rented database), there are none; `sluice doctor` reports it.
_CREATE_ROLE: Final = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
        CREATE ROLE {role} NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN
    RAISE NOTICE 'role {role} is not made: %', SQLERRM;
END $$
"""

# Tables, views, and sequences that belong to no table's column.
_RELATIONS: Final = """
    SELECT CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname AS name, c.oid, c.relkind,
        c.relacl
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY(%(schemas)s) AND (c.relkind IN ('r', 'p', 'v', 'm') OR (c.relkind = 'S' AND NOT EXISTS
        (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i')))
"""


def existing(session: connection) -> set[str]:
    """Return the existing tables and sequences."""
    with session.cursor() as cursor:
        cursor.execute(f"SELECT name FROM ({_RELATIONS}) r", {"schemas": list(SCHEMAS)})
        return {row[0] for row in cursor.fetchall()}


def _present(session: connection) -> set[Grant]:
    with session.cursor() as cursor:
        cursor.execute(
            f"WITH relations AS ({_RELATIONS}) SELECT name, '', r.rolname, a.privilege_type FROM relations"
            " CROSS JOIN LATERAL aclexplode(relacl) a JOIN pg_roles r ON r.oid = a.grantee"
            " WHERE r.rolname = ANY(%(roles)s)"
            " UNION ALL SELECT name, t.attname, r.rolname, a.privilege_type FROM relations"
            " JOIN pg_attribute t ON t.attrelid = relations.oid CROSS JOIN LATERAL aclexplode(t.attacl) a"
            " JOIN pg_roles r ON r.oid = a.grantee WHERE r.rolname = ANY(%(roles)s)",
            {"schemas": list(SCHEMAS), "roles": list(ROLES)},
        )
        return {Grant(*row) for row in cursor.fetchall()}


def _statement(verb: str, grant: Grant, to: str) -> str:
    column = f" ({grant.column})" if grant.column else ""
    kind = "SEQUENCE " if grant.table in SEQUENCES else ""
    return f"{verb} {grant.privilege}{column} ON {kind}{grant.table} {to} {grant.role}"


def unlisted(session: connection) -> list[str]:
    """Return the tables and sequences that the list above lacks."""
    return sorted(set(existing(session)) - _TABLES.keys())
