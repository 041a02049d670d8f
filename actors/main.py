"""Runs a worker process: `python -m actors.main -Q invoices -t 4`. Importing it starts everything but the threads.

Without -Q it serves every queue; several -Q, each with its -t, are groups with threads of their own. Only the
modules of the served queues are imported; a missing one ends the process.
"""

from __future__ import annotations

import gc
import importlib
import sys
from typing import Final

import dramatiq

from actors import context
from actors.queue.broker import SluiceBroker, make_broker
from actors.queue.registry import AWAITED_QUEUES, modules_for, served_queues
from actors.queue.working import groups_of, work
from actors.signer import rollback
from actors.signer.rollback import Watermark
from core.logs import log
from core.settings.settings import SettingsError, load_settings
from models.db import base, scales
from models.db.prefetch import ahead
from models.db.sessions import pooler

SIGNER_QUEUE: Final = "signer"
# Writes what only a signer may write, and is imported by none but that.
FAILED_START: Final = "actors.signer.failed_start"


def start(queues: frozenset[str]) -> SluiceBroker:
    """Boot; a signer that refuses to start records why, before it ends. Raises SettingsError."""
    try:
        return boot(queues)
    except SettingsError as refusal:
        if SIGNER_QUEUE in queues:
            importlib.import_module(FAILED_START).report(refusal)
        raise


def process_name(queues: frozenset[str]) -> str:
    """Return the name of a worker of these queues, in the log and in metrics."""
    return f"worker-{'-'.join(sorted(queues))}"


def boot(queues: frozenset[str]) -> SluiceBroker:
    """Read the settings, open the log and the stores, and declare the actors of these queues."""
    settings = load_settings(role="signer" if SIGNER_QUEUE in queues else "worker")
    name = process_name(queues)
    log.configure(settings, process=name)
    pooler.end_behind(settings, process=name)
    if queues <= AWAITED_QUEUES:
        base.connect(
            settings.database_url, statement_timeout_ms=settings.statement_timeout_ms, application_name=f"sluice-{name}"
        )
        ahead.allow()
    else:
        base.connect(settings.database_url, application_name=f"sluice-{name}")
    made = context.configure(settings, is_current=rollback.is_current)
    scales.keep(made.catalogue.ledger_scales())
    made.addresses.fill_ahead()
    broker = make_broker(settings, client_name=f"sluice-{name}")
    rollback.use(Watermark(broker.link, broker.namespace, settings.secret_keys))
    for module in modules_for(queues):
        importlib.import_module(module)
    broker.serve(queues)
    # Many queues are quiet for hours: their processes need no connection meanwhile.
    base.close()
    return broker


def connections_max(queues: frozenset[str], *, threads: int) -> int:
    """Return the number of connections to PostgreSQL that a worker may open.

    One for each thread, one that writes counts, and where a caller waits one that reads ahead and one that reserves
    addresses.
    """
    return threads + 1 + (2 if queues <= AWAITED_QUEUES else 0)


if __name__ == "__main__":
    log.begin("worker")
GROUPS: Final = groups_of(sys.argv[1:]) if __name__ == "__main__" else ()
THREADS: Final = sum(group.threads for group in GROUPS)
BROKER: Final = start(served_queues(sys.argv[1:]))
BROKER.heartbeats.connections_max = connections_max(served_queues(sys.argv[1:]), threads=THREADS)
dramatiq.set_broker(BROKER)
# Objects loaded so far stay for good; garbage collections need not go through them again and again.
gc.freeze()

if __name__ == "__main__":
    work(BROKER, groups=GROUPS, process=process_name(served_queues(sys.argv[1:])))
