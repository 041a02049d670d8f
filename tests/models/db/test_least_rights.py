"""Each role is granted what its processes' code does to tables, and nothing else."""

from __future__ import annotations

from typing import Final

import pytest

from actors.queue.registry import QUEUES
from models.db.grants import SIGNER, WEB, WORKERS, wanted
from tests.models.db.sql_reader import modules, reachable, tables

EVERY_WORKER: Final = {"actors.main", "actors.queue.broker", "actors.queue.working"}
PROCESSES: Final = {
    WEB: {name for name in modules() if name.startswith("api.")} | {"actors.queue.caller"},
    WORKERS: {module for queue, served in QUEUES.items() if queue != "signer" for module in served}
    | {*EVERY_WORKER, "actors.queue.call_actors"},
    SIGNER: {*QUEUES["signer"], *EVERY_WORKER},
}
WRITES: Final = {"INSERT", "UPDATE", "DELETE"}
# Locked by SELECT … FOR UPDATE and never changed.
LOCKED_ALONE: Final = {("accounts", WORKERS), ("accounts", SIGNER), ("maturing_credits", WORKERS)}
# Changed only by hooks (models.outcomes.payout_hooks), which are registered where the reader does not look.
BY_HOOKS: Final = {("signer.counted", SIGNER)}
# Written by triggers on tables that the role writes.
BY_TRIGGERS: Final = {("kept_rates", "INSERT", WORKERS)}


def granted(role: str, privilege: str) -> set[str]:
    return {grant.table for grant in wanted() if (grant.role, grant.privilege) == (role, privilege)}


@pytest.mark.parametrize("role", PROCESSES)
def test_a_process_has_the_grants_that_its_code_needs(role: str) -> None:
    missing = {}
    for (table, verb), where in reachable(PROCESSES[role]).items():
        privilege = "UPDATE" if verb == "LOCK" else verb
        if not verb.startswith("SET ") and table not in granted(role, privilege):
            missing[f"{privilege} on {table}"] = sorted(where)[:3]

    assert missing == {}, f"grant this to {role} in models/db/grants.py, or remove the code"


@pytest.mark.parametrize("role", PROCESSES)
def test_a_process_may_change_the_columns_that_its_code_changes(role: str) -> None:
    may = {(grant.table, grant.column) for grant in wanted() if (grant.role, grant.privilege) == (role, "UPDATE")}
    changed = {(table, verb[4:]) for table, verb in reachable(PROCESSES[role]) if verb.startswith("SET ")}

    assert changed or role == WEB
    assert {(table, column) for table, column in changed if (table, "") not in may} - may == set()


@pytest.mark.parametrize("role", PROCESSES)
def test_a_process_uses_its_write_grants(role: str) -> None:
    done = reachable(PROCESSES[role])
    idle = {
        f"{privilege} on {table}"
        for privilege in WRITES
        for table in granted(role, privilege) & tables()
        if (table, privilege) not in done
        and (table, privilege, role) not in BY_TRIGGERS
        and not (privilege == "UPDATE" and ((table, role) in LOCKED_ALONE | BY_HOOKS or (table, "LOCK") in done))
    }

    assert idle == set(), f"{role} has more than it needs"


@pytest.mark.parametrize("role", PROCESSES)
def test_a_role_may_read_the_tables_that_it_writes(role: str) -> None:
    for privilege in WRITES:
        assert granted(role, privilege) <= granted(role, "SELECT")


def test_the_reader_finds_known_accesses() -> None:
    """The other tests would prove nothing if the reader found nothing."""
    assert ("signer.spent", "INSERT") in reachable(PROCESSES[SIGNER])
    assert ("invoices", "INSERT") in reachable(PROCESSES[WORKERS]), "by way of a function of PostgreSQL"
    assert ("accounts", "LOCK") in reachable(PROCESSES[WORKERS])
    of_transfers = reachable({"models.merchants.transfers"})
    assert {("personal_transfers", "SELECT"), ("personal_transfers", "INSERT")} <= set(of_transfers), "by way of a row"
    assert ("invoices", "LOCK") in reachable({"models.invoices.rows"})
    assert set(reachable({"models.merchants.allowlists"})) >= {("merchants", "SELECT"), ("merchants", "UPDATE")}
    assert ("owners", "SELECT") not in reachable({"models.merchants.allowlists"}), "some columns, without the join"
    assert ("chain_cursors", "SELECT") in reachable({"models.payouts.history"}), "whole rows, with the join"
    assert {table for table, verb in reachable(PROCESSES[WEB]) if verb in WRITES} == {
        "calls",
        "process_counts",
        "write_mark",
    }
