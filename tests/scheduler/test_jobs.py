from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from actors.queue.registry import QUEUES, REGISTRY, Registration, modules_for, served_queues
from actors.queue.schedule import DOORBELLS
from scheduler.jobs import jobs
from tests.actors.queue.workers import make_broker, make_settings

ROOT: Final = Path(__file__).parents[2]
# Modules that only actors need: slow to load, or not for every process.
HEAVY: Final = ("chains", "web3", "eth_account", "embit", "aiohttp", "actors.invoices.calls", "actors.addresses.fill")


@pytest.fixture(scope="module")
def registry() -> Mapping[str, Registration]:
    for module in modules_for(QUEUES):
        importlib.import_module(module)
    return REGISTRY


def test_each_named_actor_exists_on_its_queue(registry: Mapping[str, Registration]) -> None:
    for row in DOORBELLS.values():
        assert registry[row.actor].queue == row.queue


def test_each_module_of_a_queue_has_an_actor_on_it(registry: Mapping[str, Registration]) -> None:
    owners = {
        queue: {entry.bind.args[0].__module__ for entry in registry.values() if entry.queue == queue}
        for queue in QUEUES
    }  # type: ignore[attr-defined]

    assert owners == {queue: set(modules) for queue, modules in QUEUES.items()}


def test_every_module_with_an_actor_has_a_queue() -> None:
    listed = {module for modules in QUEUES.values() for module in modules}
    holding = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "actors").rglob("*.py")
        if any(line.startswith(("@doorbell", "@call_actor", "@network_tick")) for line in path.read_text().splitlines())
    }

    assert holding
    assert holding == listed


def test_every_actor_can_be_declared(registry: Mapping[str, Registration]) -> None:
    broker = make_broker("redis://127.0.0.1:1/0")
    broker.serve(QUEUES.keys())

    assert set(registry) <= broker.actors.keys()


def test_job_names_are_unique() -> None:
    names = [job.name for job in jobs(make_settings())]

    assert len(names) == len(set(names))
    assert {"poll_network:ethereum", "poll_network:polygon", "fill_address_pool:evm", "prune"} <= set(names)


def test_the_scheduler_loads_no_actor_and_no_chain() -> None:
    script = f"import sys, scheduler.__main__; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "queues"),
    [
        (["actors.main", "-Q", "invoices", "-p", "1"], {"invoices"}),
        (["actors.main", "--queues", "chain", "signer", "--threads", "4"], {"chain", "signer"}),
        (["actors.main", "-p", "1"], set(QUEUES)),
    ],
)
def test_a_worker_serves_the_queues_of_its_command_line(arguments: list[str], queues: set[str]) -> None:
    assert served_queues(arguments) == queues


def test_an_unknown_queue_is_refused() -> None:
    with pytest.raises(ValueError, match="invoicse"):
        served_queues(["actors.main", "-Q", "invoicse"])
