"""`sluice treasury` and `sluice audit`, as an operator types them, over a real node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from devstack.evm.anvil import Anvil
from models.db import after_commit, base
from models.db.base import execute, rows
from models.spends import rows as spends
from tests.actors.scan.world import USDT_UNITS
from tests.actors.treasury.world import TreasuryWorld
from tests.cli.acted import acted
from tests.cli.conftest import CommandLine
from tests.models.builders import USDT, merchant
from tests.models.payouts.builders import fund
from tests.models.payouts.held import payout
from tests.models.treasury.builders import topup_rows


@pytest.fixture
def world(database: str, anvil: Callable[..., Anvil], sluice: CommandLine) -> Iterator[TreasuryWorld]:
    for made in TreasuryWorld(database, anvil).opened():
        sluice.env["DATABASE_URL"] = database
        sluice.env["ETHEREUM_RPC_URLS"] = made.providers[0].url
        yield made
        base.connect(database)


def test_status_shows_addresses_and_comparisons(world: TreasuryWorld, sluice: CommandLine, database: str) -> None:
    world.paid_invoice()
    world.reconcile()
    answer = sluice("treasury", "status", "--network", "ethereum", "--json").json["networks"][0]

    base.connect(database)
    assert answer["hot_address"] == world.hot
    assert answer["unswept"] == {"USDT": "10"}
    coin = next(c for c in answer["compared"] if c["currency"] == "ETH" and c["place"] == "hot")
    assert (coin["chain"], coin["expected"], coin["ok"]) == ("5", "5", True)
    lines = sluice("treasury", "status").out
    assert "ethereum hot: 5 ETH" in lines
    assert "10 USDT at deposit addresses" in lines


def test_liquidity_shows_owed_held_and_missing_sums(world: TreasuryWorld, sluice: CommandLine, database: str) -> None:
    world.paid_invoice()
    shop = merchant()
    fund(shop, 5 * USDT)
    payout(shop, to=3 * USDT, status="approved", is_approval_required=False)
    world.reconcile()
    execute("DELETE FROM network_fees")
    by_key = {coin["currency"]: coin for coin in sluice("treasury", "liquidity", "--json").json["coins"]}
    lines = sluice("treasury", "liquidity").out

    base.connect(database)
    [network] = by_key["USDT"]["networks"]
    assert network == {
        "network": "ethereum", "held": "10", "hot": "0", "deposits": "10", "cold": "0", "queued": "3", "usable": "0",
        "missing": "3",
    }  # fmt: skip
    assert (by_key["USDT"]["owed"], by_key["USDT"]["held"], by_key["USDT"]["short"]) == ("14.55", "10", "4.55")
    assert "  ethereum: 10 held (0 hot, 10 at deposit addresses), 0 cold, 3 queued, 0 usable: 3 MISSING\n" in lines
    assert ("ETH: 0 owed, 5 held\n" in lines, "DAI" in by_key, "DAI" in lines) == (True, True, False)


def test_plan_and_a_dry_run_do_nothing(world: TreasuryWorld, sluice: CommandLine, database: str) -> None:
    mine = world.paid_invoice()
    plan = sluice("treasury", "plan", "--json").json
    dry = sluice("treasury", "sweep", "--dry-run", "--json").json

    base.connect(database)
    assert [(p["address"], p["amount"], p["usd"], p["verdict"]) for p in plan["planned"]] == [
        (mine.address.lower(), "10", "10.00", "sweep")
    ]
    assert dry == plan
    assert spends.to_watch("ethereum", limit=10) == []


def test_a_sweep_rings_the_signer(world: TreasuryWorld, sluice: CommandLine, database: str, redis_url: str) -> None:
    world.paid_invoice()
    sluice.env["REDIS_URL"] = redis_url
    outcome = sluice("treasury", "sweep", "--network", "ethereum")
    base.connect(database)
    assert (outcome.code, "the signer was notified" in outcome.out) == (0, True)
    assert after_commit._Process.send is None  # no broker whose link was closed


def test_without_redis_a_sweep_is_reported_as_failed(world: TreasuryWorld, sluice: CommandLine) -> None:
    del world
    outcome = sluice("treasury", "sweep")
    assert outcome.code == 1
    assert "Redis cannot be reached" in outcome.err


def test_a_surplus_is_adopted_once(world: TreasuryWorld, sluice: CommandLine, database: str) -> None:
    world.reconcile()
    world.providers[0].hide_logs()
    world.send(world.hot, 3 * USDT_UNITS)
    world.advance()
    world.reconcile(3)
    failed = sluice("audit", "--json")
    assert (failed.code, failed.json["ok"], failed.json["violations"]) == (1, False, [])
    adopted = sluice("treasury", "adopt", "ethereum", "USDT", "--yes", "--json")
    again = sluice("treasury", "adopt", "ethereum", "USDT", "--yes")

    base.connect(database)
    assert adopted.json["amount"] == "30"
    assert (again.code, "no USDT beyond the books" in again.err) == (1, True)
    assert topup_rows("units", "origin")[-1] == (30 * 10**18, "adopted")
    assert acted() == [("surplus.adopted", "USDT on ethereum")]
    world.advance()
    world.reconcile()
    assert sluice("audit").code == 0
    base.connect(database)
    assert len(rows("SELECT 1 FROM payout_freezes")) == 1
    execute("DELETE FROM payout_freezes")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("status", "--network", "bitcoin"), "bitcoin has no providers here"),
        (("plan", "--network", "nowhere"), "nowhere has no providers here"),
        (("adopt", "bitcoin", "BTC"), "bitcoin has no providers here"),
        (("adopt", "ethereum", "SOL"), "cannot be compared now"),
    ],
)
def test_an_impossible_command_is_reported(
    world: TreasuryWorld, sluice: CommandLine, words: tuple[str, ...], problem: str
) -> None:
    del world
    outcome = sluice("treasury", *words)
    assert outcome.code == 1
    assert problem in outcome.err
