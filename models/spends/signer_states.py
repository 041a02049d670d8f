"""Keeps whether each signer process can sign. Written by the signer alone, also by one that cannot start."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from models.db.base import column, execute
from models.db.table import BY_DATABASE, Table

# A signer writes its row at least this often; a row that is older than twice that says nothing about now.
EVERY_S: Final = 15
AGE_MAX_S: Final = 2 * EVERY_S
KEPT_S: Final = 3_600


class SignerState(Table, table="signer_states"):
    """A signer process, and the reason why it cannot sign; '' if it can."""

    process: str
    problem: str
    noted_at: datetime = BY_DATABASE


def note(process: str, problem: str) -> None:
    """Record whether a signer process can sign now; idempotent. problem: without secrets."""
    SignerState(process=process, problem=problem).write(
        "ON CONFLICT (process) DO UPDATE SET problem = EXCLUDED.problem, noted_at = EXCLUDED.noted_at"
    )
    execute("DELETE FROM signer_states WHERE noted_at < clock_timestamp() - make_interval(secs => %s)", (KEPT_S,))


def problems() -> list[str]:
    """Return the reasons why running signers cannot sign, each once; empty if all can."""
    return column(
        "SELECT DISTINCT problem FROM signer_states WHERE problem <> ''"
        " AND noted_at > clock_timestamp() - make_interval(secs => %s) ORDER BY 1",
        (AGE_MAX_S,),
    )
