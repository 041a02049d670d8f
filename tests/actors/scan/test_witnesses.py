"""Deposits that need a second provider, over real nodes of which some lie."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import structlog

from actors import context
from chains.registry import reader
from core.addresses.evm import keccak256
from core.settings.settings import load_settings
from models.db.base import execute, one, rows, transaction
from models.deposits import rows as deposits
from models.deposits import witnesses
from models.invoices.rows import InvoiceRow
from models.outcomes import reversals
from models.wallets.rows import WalletRow
from tests.actors.scan.test_lying_providers import other_hash
from tests.actors.scan.world import ETHER, USDT_UNITS, World
from tests.models.builders import CATALOGUE
from tests.models.wallets.builders import wallet
from tests.peers.json_rpc_node import Raw
from tests.peers.lying_rpc import DOWN

TRANSFER = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()

Start = Callable[..., World]


@pytest.fixture
def start(start: Start) -> Start:
    """Begin scans, by two providers by default."""
    return lambda providers=2, **env: start(providers, **env)


def paid(world: World) -> InvoiceRow:
    """Pay an invoice of 10 USDT and bury the payment."""
    mine = world.invoice()
    world.pay(mine)
    world.confirm_sent()
    return mine


def shown(of: InvoiceRow | WalletRow) -> list[str]:
    return [deposit.shown_status for deposit in deposits.of_owner(of.id)]


def invent(world: World, to: str, units: int) -> None:
    """Let the first provider show a transfer of USDT that does not exist."""
    height = world.mine()
    block_hash = world.node.ask("eth_getBlockByNumber", hex(height), False)["hash"]
    log = {
        "address": str(CATALOGUE.pairs["USDT", "ethereum"].contract).lower(),
        "topics": [TRANSFER, "0x" + "0" * 24 + "b2" * 20, "0x" + "0" * 24 + to[2:].lower()],
        "data": f"0x{units:064x}",
        "blockHash": block_hash,
        "blockNumber": hex(height),
        "transactionHash": "0x" + "ee" * 32,
        "logIndex": "0x0",
        "removed": False,
    }
    receipt = {
        "transactionHash": log["transactionHash"], "blockHash": block_hash, "blockNumber": hex(height),
        "status": "0x1", "logs": [log],
    }  # fmt: skip
    world.providers[0].invent(height, log, receipt)


def again(world: World) -> None:
    """Make the next attempt due, and run it."""
    world.pass_time(400)
    execute("UPDATE rates SET quoted_at = app_now()")
    world.witness()


def test_below_the_threshold_one_provider_is_enough(start: Start) -> None:
    world = start(QUORUM_USD="11")

    assert world.status(paid(world)) == "paid"
    assert rows("SELECT 1 FROM deposit_quorums") == []


def test_from_the_threshold_on_a_deposit_waits_for_a_witness_while_the_scan_continues(start: Start) -> None:
    world = start(QUORUM_USD="10")
    mine = paid(world)

    assert (world.status(mine), shown(mine)) == ("check", ["awaiting_quorum"])
    assert world.cursor()[0] == world.node.height()
    assert [(network, count) for network, count, _ in witnesses.waiting()] == [("ethereum", 1)]
    # Nor does another settlement of the invoice confirm it meanwhile.
    world.settle(mine)
    assert shown(mine) == ["awaiting_quorum"]

    world.witness()
    assert (world.status(mine), shown(mine)) == ("paid", ["credited"])
    assert witnesses.waiting() == []


def test_a_guarded_deposits_depth_needs_two_providers_too(start: Start) -> None:
    """Both have the payment. The blocks above it are one provider's own; the other one has different blocks."""
    world = start(QUORUM_USD="10")
    mine = world.invoice()
    world.pay(mine)
    height = world.mine()
    world.poll()
    world.witness()
    assert shown(mine) == ["awaiting_quorum"]
    world.providers[1].lies["eth_getBlockByNumber"] = lambda truth, params: (
        other_hash(truth, params) if truth and int(truth["number"], 16) > height else truth
    )
    world.confirm()
    world.witness()
    assert (shown(mine), world.credited()) == (["awaiting_quorum"], 0)
    assert one("SELECT problem FROM deposit_quorums") == ("1 of 2 providers have the block of its last confirmation",)

    world.providers[1].lies.clear()
    again(world)
    assert world.status(mine) == "paid"


def test_an_agreed_deposit_is_checked_again_at_its_last_confirmation(start: Start) -> None:
    world = start(QUORUM_USD="10")
    mine = world.invoice()
    world.pay(mine)
    world.mine()
    world.poll()
    world.witness()
    asked = [len(provider.asked) for provider in world.providers]
    world.witness()
    assert ([len(provider.asked) for provider in world.providers], shown(mine)) == (asked, ["awaiting_quorum"])
    assert rows("SELECT attempts, agreed_at, next_attempt_at <= app_now() FROM deposit_quorums") == [(1, None, True)]

    world.confirm()
    world.witness()
    assert world.status(mine) == "paid"


def test_coin_needs_a_witness_too(start: Start) -> None:
    world = start(QUORUM_USD="0")
    mine = world.coin_invoice()
    world.pay(mine, ETHER, currency="ETH")
    world.confirm_sent()
    assert shown(mine) == ["awaiting_quorum"]

    world.witness()

    assert world.status(mine) == "paid"


def test_a_single_provider_needs_no_witness(start: Start) -> None:
    world = start(1, QUORUM_USD="0")

    assert world.status(paid(world)) == "paid"


def test_the_same_address_twice_is_not_a_second_provider(start: Start, database: str) -> None:
    world = start(1, QUORUM_USD="0")
    url = world.providers[0].url
    env = {"ENVIRONMENT": "development", "DATABASE_URL": database, "REDIS_URL": "redis://127.0.0.1:1/0"}
    context.configure(load_settings(env | {"ETHEREUM_RPC_URLS": f"{url},{url}/"}))

    assert world.status(paid(world)) == "paid"


@pytest.mark.parametrize(
    "failure", [DOWN, Raw(status=429), Raw(b"<html>")], ids=["hangs up", "too many requests", "html"]
)
def test_a_failing_second_provider_keeps_the_deposit_waiting(start: Start, failure: Raw) -> None:
    world = start(QUORUM_USD="10")
    mine = paid(world)
    world.providers[1].failure = failure
    world.witness()
    assert shown(mine) == ["awaiting_quorum"]
    assert rows("SELECT attempts, problem <> '' FROM deposit_quorums") == [(1, True)]

    world.providers[1].failure = None
    world.witness()
    assert shown(mine) == ["awaiting_quorum"]  # not due yet

    for node in reader(world.network, context.context().settings)._providers._nodes:  # type: ignore[attr-defined]
        node.barred_until = 0.0
    again(world)
    assert world.status(mine) == "paid"


def test_an_altered_amount_is_never_credited(start: Start) -> None:
    world = start(QUORUM_USD="10")
    world.providers[0].alter_amounts(1000)
    mine = paid(world)
    world.witness()
    again(world)

    assert (shown(mine), world.credited()) == (["awaiting_quorum"], 0)
    assert one("SELECT problem FROM deposit_quorums") == ("1 of 2 providers agree, 1 tell otherwise",)


def test_two_providers_with_another_amount_outvote_one(start: Start) -> None:
    world = start(3, QUORUM_USD="10")
    world.providers[0].alter_amounts(1000)
    mine = paid(world)
    with structlog.testing.capture_logs() as logs:
        world.witness()
    assert world.deposits("amount_units", "status", "round") == [(10 * 10**18, "pending", 1)]

    world.witness()

    assert [log["log_level"] for log in logs if log["event"] == "deposit.outvoted"] == ["error"]
    assert (shown(mine), world.status(mine)) == (["credited"], "paid")


def test_two_providers_with_another_recipient_outvote_one(start: Start) -> None:
    world = start(3, QUORUM_USD="10")
    mine, liars = wallet(world.shop), world.invoice()
    world.providers[0].alter_recipient(liars.address)
    world.pay(mine)
    world.confirm_sent()
    assert shown(liars) == ["awaiting_quorum"]

    world.witness()
    world.witness()

    assert (shown(liars), shown(mine)) == ([], ["credited"])


def test_an_agreed_deposit_is_not_reversed(start: Start) -> None:
    world = start(QUORUM_USD="10")
    paid(world)
    [asked] = witnesses.due("ethereum", confirmations=2, limit=10)
    assert witnesses.agree(asked)

    with transaction():
        assert not reversals.outvote(CATALOGUE, asked)
    assert rows("SELECT status FROM deposits") == [("pending",)]


def test_an_invented_deposit_is_never_credited(start: Start) -> None:
    world = start(QUORUM_USD="10")
    mine = world.invoice()
    invent(world, mine.address, USDT_UNITS)
    world.confirm()
    assert shown(mine) == ["awaiting_quorum"]

    world.witness()
    again(world)

    assert (shown(mine), world.credited()) == (["awaiting_quorum"], 0)


def test_two_of_three_providers_are_enough(start: Start) -> None:
    world = start(3, QUORUM_USD="10")
    mine = paid(world)
    world.providers[1].lies["eth_getTransactionReceipt"] = None
    world.witness()

    assert world.status(mine) == "paid"


def test_two_against_two_providers_are_not_enough(start: Start) -> None:
    world = start(4, QUORUM_USD="10")
    mine = paid(world)
    for provider in world.providers[2:]:
        provider.lies["eth_getTransactionReceipt"] = None
    world.witness()

    assert shown(mine) == ["awaiting_quorum"]


def test_small_deposits_share_an_hourly_budget(start: Start) -> None:
    world = start(QUORUM_USD="1000", QUORUM_HOURLY_USD="25")
    first, second, third = paid(world), paid(world), paid(world)

    assert [world.status(of) for of in (first, second, third)] == ["paid", "paid", "check"]
    assert (shown(third), one("SELECT usd_cents FROM unwitnessed_credits")) == (["awaiting_quorum"], (2000,))
    assert one("SELECT reason FROM deposit_quorums") == ("hourly",)

    world.pass_time(3600)
    execute("UPDATE rates SET quoted_at = app_now()")
    assert world.status(paid(world)) == "paid"


def test_a_deposit_without_a_price_needs_a_witness(start: Start) -> None:
    world = start(QUORUM_USD="1000")
    execute("UPDATE rates SET quoted_at = app_now() - interval '1 day'")

    assert shown(paid(world)) == ["awaiting_quorum"]
    assert one("SELECT reason FROM deposit_quorums") == ("unpriced",)


def test_a_deposit_returning_after_a_reorg_is_witnessed_again(start: Start) -> None:
    world = start(QUORUM_USD="10")
    mine = world.invoice()
    txid, raw = world.signed(mine.address.lower(), USDT_UNITS)
    world.node.ask("eth_sendRawTransaction", raw)
    world.confirm_sent()
    world.witness()
    assert world.status(mine) == "paid"

    world.reorg(3, (raw, 1))
    world.advance(2)
    assert (world.status(mine), shown(mine)) == ("check", ["awaiting_quorum"])

    world.witness()
    assert (world.status(mine), world.deposits("txid", "round")) == ("paid", [(txid, 1)])
    world.assert_sound()


def test_a_witness_of_a_replaced_block_does_not_count(start: Start) -> None:
    world = start(QUORUM_USD="10")
    paid(world)
    [asked] = witnesses.due("ethereum", confirmations=2, limit=10)
    execute("UPDATE deposits SET block_hash = '0xother'")

    assert not witnesses.agree(asked)
    assert rows("SELECT agreed_at FROM deposit_quorums") == [(None,)]
