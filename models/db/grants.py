"""Tells which process may do what to which table, as data; brought into force at the end of every `sluice migrate`.

The owner of the tables migrates, and runs operators' commands. Every process has a login of its own that is a member of
one role below and owns nothing. A table that stands in no row here is nobody's but the owner's.
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
# Who may look into a schema that not everybody may look into.
_SCHEMA_READERS: Final = {"public": ROLES, "signer": (SIGNER, READ_ONLY)}

_WORDS: Final = {"r": "SELECT", "i": "INSERT", "u": "UPDATE", "d": "DELETE", "n": "USAGE"}
_LETTER: Final = re.compile(r"([riudn])(?:\(([\w,]+)\))?")

# One a family: they number its addresses.
SEQUENCES: Final = frozenset(f"address_claims_{family}" for family in TRAITS)

# By table: web, workers, signer. r reads, i inserts, u updates, d deletes, n draws numbers; in brackets the columns
# that alone are meant. Whoever locks rows needs u on some column: where it changes nothing, on one that cannot change.
_TABLES: Final[dict[str, tuple[str, str, str]]] = {
    "accepted_methods": ("r", "rid", "r"),
    "accounts": ("r", "riu(id)", "riu(id)"),
    "address_chunks": ("r", "r", "ri"),
    **dict.fromkeys(SEQUENCES, ("r", "rn", "rnu")),
    "address_marks": ("", "riud", "rud"),
    "address_owners": ("r", "ri", "r"),
    "address_returns": ("r", "riud", "riu"),
    # The signer reads which are revoked, and no sealed secret.
    "api_keys": ("r", "r", "r(public_id,revoked_at)"),
    # Moved by `sluice clock` alone, in the owner's name.
    "app_clock": ("r", "r", "r"),
    "attempts_seen": ("", "riu", "r"),
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
    "clock_mark": ("", "riu", ""),
    # The scan writes what it sees of them, the signer which of its spends has one.
    "coins": ("r", "riu", "ru(held_by,held_number)"),
    # The signer alone says that another database is the one to sign from.
    "database_looks": ("", "r", "ru"),
    "database_marks": ("", "ri", "riu"),
    "debtors": ("", "riud", "ri"),
    "deposit_quorums": ("r", "riu", "r"),
    "deposits": ("r", "riu", "ru"),
    "discounts": ("r", "rid", "r"),
    # The signer ends refunds, after which a payment may be paid.
    "emails": ("", "riud", "ri"),
    # Nobody changes what happened.
    "invoice_events": ("r", "ri", "ri"),
    "invoices": ("r", "riu", "ru"),
    # The signer settles payments too, and ends their quotes.
    "kept_rates": ("r", "rid", "r"),
    # Written once and never changed: not by the signer, nor by anybody else.
    "ledger_scales": ("r", "ri", "ri"),
    "ledger_transfers": ("r", "ri", "ri"),
    "liquidity_alarms": ("", "riu", ""),
    "maturing_credits": ("r", "rid", "ri"),
    "merchants": (
        "r",
        "ru(terms_version,accuracy_ppm,accuracy_enabled,ip_allowlist,is_payout_fee_on_top,is_split_enabled,"
        "split_hold_hours)",
        "r",
    ),
    "network_fees": ("r", "riu", "r"),
    "owner_emails": ("", "r", ""),
    "owners": ("", "", ""),
    "payment_links": ("r", "riu(is_active,updated_at)", "r"),
    # The signer reads whose word a payout has.
    "payout_approvals": ("r", "ri", "r(payout_id,principal)"),
    "payout_freezes": ("r", "riu", "riud"),
    "payout_links": ("r", "riud", ""),
    # An operator's word on how a payout ended.
    "payout_settlements": ("", "", ""),
    "payouts": ("r", "riu", "ru"),
    "personal_transfers": ("r", "ri", ""),
    "pool_addresses": ("r", "r", "ri"),
    # A quote is deleted if a clock that was ahead wrote it, and it has not begun.
    "quotes": ("r", "rid", "ri"),
    "rate_sources": ("", "riu", ""),
    "rates": ("r", "riu", "r"),
    "reconciliations": ("r", "riu", ""),
    "sanction_verdicts": ("", "rd", "riu"),
    "schema_migrations": ("r", "r", "r"),
    # The signer's own count: what it lets leave is bounded by rows that nobody else can write.
    "signer.counted": ("", "", "riu"),
    "signer.spent": ("", "", "riu"),
    "signing_stops": ("r", "riu", "riud"),
    # The signer settles payments too.
    "sightings": ("r", "riud", "r"),
    "spend_accounts": ("", "", "riu"),
    # What was signed is not for the web's eyes.
    "spend_attempts": ("r(network,txid,spend_id)", "r", "riu"),
    "spend_movements": ("r", "r", "rid"),
    "spend_outputs": ("r", "r", "riu"),
    "spends": ("r", "r", "riu"),
    "split_earnings": ("r", "riu", ""),
    "split_rules": ("r", "riud", "r"),
    # The signer ends refunds, and settles the payments whose they were.
    "split_shares": ("r", "riu", "riu"),
    "split_takes": ("r", "ri", "r"),
    "stranger_spends": ("r", "riu", "r"),
    "treasury_addresses": ("r", "r", "riu"),
    "treasury_moves": ("r", "r", "r"),
    "treasury_topups": ("r", "riu", "r"),
    "treasury_walks": ("", "riu", "riu"),
    # An operator's word on what was lost.
    "treasury_writeoffs": ("r", "r", "r"),
    "unknown_spends": ("r", "riu", "ru"),
    "unwitnessed_credits": ("", "riud", ""),
    "wallets": ("r", "riu", "ru"),
    "webhook_deliveries": ("r", "riu", "ri"),
    "webhook_endpoints": ("r", "riu", "r"),
    "withdrawal_rules": ("r", "riu", ""),
    "withdrawal_walk": ("", "ru", ""),
}
# Sealed secrets, and the answers that held some: for no reader's eyes.
_SEALED: Final = frozenset({"api_keys", "calls", "emails", "webhook_endpoints"})


class Grant(NamedTuple):
    """One privilege of one role. column is '' if it is on the whole table."""

    table: str
    column: str
    role: str
    privilege: str


def wanted() -> set[Grant]:
    """Return every grant that there is to be."""
    return {grant for table in _TABLES for grant in _of(table)}


def _of(table: str) -> Iterator[Grant]:
    reader = "" if table in _SEALED else "r"
    for role, letters in zip(ROLES, (*_TABLES[table], reader), strict=True):
        for letter, columns in _LETTER.findall(letters):
            for column in columns.split(","):
                yield Grant(table, column, role, _WORDS[letter])


def apply(session: connection) -> list[str]:
    """Make the roles, and make the grants what is wanted; return the roles that this user may not make.

    A role belongs to the whole server, so that other databases may be making it just now. Where a role is missing, its
    grants are left out, and the next run looks again.
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
        found = _found(session)
        statements = [_statement("REVOKE", grant, "FROM") for grant in sorted(found - aim)]
        statements += [_statement("GRANT", grant, "TO") for grant in sorted(aim - found)]
        statements += [
            f"GRANT USAGE ON SCHEMA {schema} TO {', '.join(readers)}"
            for schema in schemas
            if (readers := sorted(roles.intersection(_SCHEMA_READERS[schema])))
        ]
        if statements:
            cursor.execute("BEGIN;\n" + ";\n".join(statements) + ";\nCOMMIT")
    return sorted(set(ROLES) - roles)


# Whoever may not make roles (a rented database's user) gets none; `sluice doctor` says so.
_CREATE_ROLE: Final = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
        CREATE ROLE {role} NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN
    RAISE NOTICE 'role {role} is not made: %', SQLERRM;
END $$
"""

# Tables and views, and the sequences that are no table's own.
_RELATIONS: Final = """
    SELECT CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname AS name, c.oid, c.relkind,
        c.relacl
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY(%(schemas)s) AND (c.relkind IN ('r', 'p', 'v', 'm') OR (c.relkind = 'S' AND NOT EXISTS
        (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i')))
"""


def existing(session: connection) -> set[str]:
    """Return the tables and sequences that there are."""
    with session.cursor() as cursor:
        cursor.execute(f"SELECT name FROM ({_RELATIONS}) r", {"schemas": list(SCHEMAS)})
        return {row[0] for row in cursor.fetchall()}


def _found(session: connection) -> set[Grant]:
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
    """Return the tables and sequences without a row above."""
    return sorted(set(existing(session)) - _TABLES.keys())
