"""Holds what the connected user may do against what its process needs. Asked by `sluice doctor`."""

from __future__ import annotations

from typing import Final, NamedTuple

from models.db.base import column, is_true, rows, value
from models.db.grants import ROLES, SCHEMAS, SEQUENCES, wanted

# All privileges on tables; only the owner needs the last three.
_PRIVILEGES: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
_OF_COLUMNS: Final = ("SELECT", "INSERT", "UPDATE", "REFERENCES")


class Rights(NamedTuple):
    """The connected user's rights compared with a role's, in words: "UPDATE on balances", "is a superuser"."""

    more: list[str]
    less: list[str]


def missing_roles() -> list[str]:
    """Return the roles that this server lacks."""
    there = column("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", (list(ROLES),))
    return [role for role in ROLES if role not in there]


def compare(role: str) -> Rights:
    """Compare the connected user with a role's grants."""
    needs = [grant for grant in wanted() if grant.role == role and grant.table not in SEQUENCES]
    whole = {(need.privilege, need.table) for need in needs if not need.column}
    some = whole | {(need.privilege, need.table) for need in needs if need.column}
    has_whole, has_some = _privileges(_WHOLE, _PRIVILEGES), _privileges(_SOME, _OF_COLUMNS)
    more = (has_whole - whole) | (has_some - some)
    less = (whole - has_whole) | {need for need in some - whole if need not in has_some}
    powers = [text for text, sql in _POWERS if value(sql)]
    others = [f"may become {other}" for other in ROLES if other != role and _is_member(other)]
    return Rights(more=[*powers, *others, *_lines(more)], less=_lines(less))


_TABLES: Final = (
    "SELECT p.name, CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN unnest(%s::text[]) AS p (name)"
    " WHERE n.nspname = ANY(%s) AND c.relkind IN ('r', 'p', 'v', 'm')"
)
_WHOLE: Final = f"{_TABLES} AND has_table_privilege(c.oid, p.name)"
_SOME: Final = f"{_TABLES} AND has_any_column_privilege(c.oid, p.name)"
_POWERS: Final = (
    ("is a superuser", "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"),
    ("may make roles", "SELECT rolcreaterole FROM pg_roles WHERE rolname = current_user"),
    (
        "owns tables",
        "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname IN ('public', 'signer') AND c.relkind = 'r' AND pg_has_role(c.relowner, 'USAGE'))",
    ),
)


def _privileges(sql: str, privileges: tuple[str, ...]) -> set[tuple[str, str]]:
    return set(rows(sql, (list(privileges), list(SCHEMAS))))


def _is_member(role: str) -> bool:
    return is_true("SELECT pg_has_role(oid, 'MEMBER') FROM pg_roles WHERE rolname = %s", (role,))


def _lines(pairs: set[tuple[str, str]]) -> list[str]:
    return [f"{privilege} on {table}" for table, privilege in sorted((table, privilege) for privilege, table in pairs)]
