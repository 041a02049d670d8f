"""`sluice rescan`, as an operator types it, over a real node of which the scan has seen nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from devstack.evm.anvil import Anvil
from models.db import base
from tests.actors.scan.world import World
from tests.cli.conftest import CommandLine
from tests.peers.lying_rpc import DOWN


@pytest.fixture
def world(database: str, anvil: Callable[..., Anvil], sluice: CommandLine) -> Iterator[World]:
    with World(database, anvil).served_by() as made:
        sluice.env["DATABASE_URL"] = database
        sluice.env["ETHEREUM_RPC_URLS"] = made.providers[0].url
        yield made


def missed(world: World) -> tuple[str, int]:
    """Pay an invoice while the provider hides it; returns the transaction and its height."""
    world.providers[0].hide_logs()
    txid = world.pay(world.invoice())
    height = world.mine()
    world.confirm()
    world.providers[0].lies.clear()
    return txid, height


def test_a_range_is_read_again_and_twice_is_once(world: World, sluice: CommandLine, database: str) -> None:
    txid, height = missed(world)
    words = ("rescan", "ethereum", "--from", str(height - 1), "--to", str(height), "--json")
    first, second = sluice(*words), sluice(*words)

    assert (first.code, first.json["blocks"], first.json["deposits_found"]) == (0, 2, 1)
    assert (second.code, second.json["deposits_found"]) == (0, 0)
    _reconnect(database)
    assert world.deposits("txid", "status") == [(txid, "credited")]


def test_a_transaction_names_its_block(world: World, sluice: CommandLine, database: str) -> None:
    txid, _ = missed(world)
    outcome = sluice("rescan", "ethereum", "--txid", txid)

    assert outcome.code == 0
    assert "deposits found: 1" in outcome.out
    _reconnect(database)
    assert world.deposits("txid") == [(txid,)]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("bitcoin", "--from", "1"), "bitcoin has no providers here"),
        (("nowhere", "--from", "1"), "nowhere has no providers here"),
        (("ethereum",), "give either"),
        (("ethereum", "--from", "1", "--txid", "0x" + "11" * 32), "give either"),
        (("ethereum", "--txid", "0x" + "11" * 32), "no provider of ethereum knows"),
        (("ethereum", "--from", "999999999"), "is scanned up to block"),
        (("ethereum", "--from", "1", "--to", "0"), "--to has to follow"),
    ],
)
def test_an_impossible_rescan_is_reported(
    world: World, sluice: CommandLine, words: tuple[str, ...], problem: str
) -> None:
    del world
    outcome = sluice("rescan", *words)

    assert outcome.code == 1
    assert problem in outcome.err


def test_failing_providers_are_reported_without_their_address(world: World, sluice: CommandLine) -> None:
    world.providers[0].failure = DOWN
    outcome = sluice("rescan", "ethereum", "--from", "1")

    assert outcome.code == 1
    assert "the providers of ethereum failed" in outcome.err
    assert "provider-0" not in outcome.err + outcome.out


def _reconnect(database: str) -> None:
    base.connect(database)
