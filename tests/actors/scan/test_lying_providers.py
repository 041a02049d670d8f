"""Scans a growing chain over providers that fail, lag and lie, and credits every payment once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest
import structlog

from actors.context import context
from actors.scan import rescan
from chains.base import COUNT_MAX
from chains.evm import wire
from chains.net import node as net_node
from chains.net import providers
from chains.registry import reader
from devstack.evm.anvil import Anvil
from models.db.base import execute, rows
from tests.actors.scan.world import ETHER, USDT_UNITS, World
from tests.peers.json_rpc_node import Raw, Refusal
from tests.peers.lying_rpc import DOWN, GARBAGE, HTML, LyingRpc

TIMEOUT_S, SILENCE_S = 1.0, 0.05


@pytest.fixture(autouse=True)
def _heads_are_compared_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "HEADS_EVERY_S", 0.0)


@pytest.fixture
def world(database: str, anvil: Callable[..., Anvil]) -> Iterator[World]:
    """Two providers of one chain, the first of which is preferred."""
    with World(database, anvil, RPC_TIMEOUT_S=str(TIMEOUT_S)).served_by(2) as made:
        yield made
        made.assert_sound()


def asked(provider: LyingRpc) -> int:
    return len(provider.asked)


def pay_and_scan(world: World) -> str:
    mine = world.invoice()
    world.pay(mine)
    world.mine()
    world.mine(world.network.confirmations - 1)
    world.poll(6)
    return world.status(mine)


def nodes(world: World) -> Sequence[Any]:
    clients: Sequence[Any] = reader(world.network, context().settings)._providers._nodes  # type: ignore[attr-defined]
    return clients


def fail(world: World, failure: Raw | Refusal | None, *, count: int) -> None:
    """Make a number of providers fail from now on. A silent one is waited for briefly, though many times."""
    is_silent = isinstance(failure, Raw) and failure.pause_s > 0
    for provider, node in zip(world.providers[:count], nodes(world), strict=False):
        provider.failure = failure
        node.client._http._timeout_s = SILENCE_S if is_silent else TIMEOUT_S


FAILURES: dict[str, Raw | Refusal] = {
    "hangs up": DOWN,
    "html with 200": HTML,
    "garbage": GARBAGE,
    "429": Raw(status=429, retry_after="2"),
    "502": Raw(status=502),
    "silence": Raw(b"{}", pause_s=0.2),
    "refusal": Refusal(-32005, "daily request count exceeded, request rate limited"),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_payment_is_credited_through_the_other_provider(world: World, failure: Raw | Refusal) -> None:
    fail(world, failure, count=1)

    assert pay_and_scan(world) == "paid"


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_the_scan_pauses_while_all_providers_fail_and_continues_afterwards(
    world: World, failure: Raw | Refusal
) -> None:
    before = world.cursor()
    fail(world, failure, count=2)
    assert pay_and_scan(world) == "check"
    assert world.cursor() == before

    fail(world, None, count=2)
    for node in nodes(world):
        node.barred_until = 0.0
    world.catch_up()

    assert rows("SELECT status FROM deposits") == [("credited",)]


def test_a_node_that_asks_for_a_pause_is_left_alone(world: World) -> None:
    world.providers[0].failure = Raw(status=429, retry_after="60")
    world.mine()
    world.poll()
    before = asked(world.providers[0])
    world.mine(3)
    world.poll(3)

    assert asked(world.providers[0]) == before
    assert world.cursor()[0] == world.node.height()


def test_empty_logs_are_detected_by_the_blocks_filter(world: World) -> None:
    world.providers[0].lies["eth_getLogs"] = []

    assert pay_and_scan(world) == "paid"


def test_empty_logs_without_receipts_are_checked_with_the_other_provider(world: World) -> None:
    world.providers[0].hide_logs()

    assert pay_and_scan(world) == "paid"


def test_logs_missing_from_a_transaction_are_detected_by_its_receipt(world: World) -> None:
    mine = world.invoice()
    txids = [world.pay(mine, 4_000_000), world.pay(mine, 6_000_000)]
    world.providers[0].lies["eth_getLogs"] = lambda truth, _params: [
        log for log in truth if log["transactionHash"] == txids[0]
    ]
    world.confirm_sent()
    # A hidden transfer among several of a token is not seen at once; the second reading sees it.
    world.advance(8)
    world.rescan()
    # Only one reading showed it.
    world.witness()
    world.poll()

    assert sorted(world.deposits("txid")) == sorted((txid,) for txid in txids)
    assert world.status(mine) == "paid"


def test_missing_transactions_are_detected_by_their_gas(world: World) -> None:
    mine = world.coin_invoice()
    world.providers[0].lies["eth_getBlockByNumber"] = lambda truth, params: (
        truth and truth | {"transactions": []} if params[1] else truth
    )
    world.pay(mine, ETHER, currency="ETH")
    world.confirm_sent()

    assert world.status(mine) == "paid"


def test_a_lagging_node_does_not_delay_the_scan(world: World) -> None:
    world.pass_time(60)
    world.advance(40)
    world.providers[0].lag(20)

    assert pay_and_scan(world) == "paid"
    assert world.cursor()[0] == world.node.height()


def test_a_head_that_goes_back_reverses_nothing(world: World) -> None:
    assert pay_and_scan(world) == "paid"
    before = world.cursor()
    world.advance(30)
    for provider in world.providers:
        provider.lag(28)
    world.poll(3)

    assert world.cursor()[0] > before[0]
    assert rows("SELECT status FROM deposits") == [("credited",)]


def test_an_invented_head_does_not_lead_the_scan_astray(world: World) -> None:
    world.providers[0].lies["eth_blockNumber"] = hex(10**9)

    assert pay_and_scan(world) == "paid"
    assert world.cursor()[0] == world.node.height()


@pytest.mark.parametrize("place", [0, 1])
def test_a_head_whose_block_is_refused_does_not_stop_the_scan(world: World, place: int) -> None:
    liar = world.providers[place]
    liar.lies |= {
        "eth_blockNumber": lambda truth, _params: hex(int(truth, 16) + 100),
        "eth_getBlockByNumber": lambda truth, _params: truth or Refusal(-32000, "header not found"),
    }

    assert pay_and_scan(world) == "paid"
    assert world.cursor()[0] == world.node.height()


@pytest.mark.parametrize("ahead", [1, 10**9])
def test_an_invented_head_stops_neither_sales_nor_payouts(world: World, ahead: int) -> None:
    world.providers[0].lies["eth_blockNumber"] = lambda truth, _params: hex(int(truth, 16) + ahead)
    execute("UPDATE chain_cursors SET head_reached_at = NULL")
    world.mine()
    world.poll(2)

    stored = rows("SELECT head_height - height, head_reached_at > app_now() - interval '1 minute' FROM chain_cursors")
    assert stored == [(0, True)]


def name_as_sender(provider: LyingRpc, address: str, **change: str) -> None:
    """Let a provider name an address as the sender of all transactions of a block, under the true header."""

    def block(truth: Any, params: list[Any]) -> Any:
        if truth is None or not params[1]:
            return truth
        return truth | {
            "transactions": [transaction | {"from": address} | change for transaction in truth["transactions"][:1]]
        }

    provider.lies["eth_getBlockByNumber"] = block


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    ("change", "shown"),
    [({"hash": "0x" + "ab" * 32}, Refusal(-32000, "busy")), ({"hash": "0x" + "ab" * 32}, None), ({}, None)],
    ids=["refused", "not found", "another's"],
)
def test_a_provider_that_invents_senders_rests_alone(
    database: str, anvil: Callable[..., Anvil], count: int, change: dict[str, str], shown: object
) -> None:
    with World(database, anvil).served_by(count) as world:
        liar, mine = world.providers[0], world.invoice()
        name_as_sender(liar, mine.address.lower(), **change)
        if change:
            liar.lies["eth_getTransactionByHash"] = shown
        world.pay(mine)
        for _ in range(world.network.confirmations):
            world.decoy()
            world.mine()
            world.poll(2)
        assert world.cursor()[0] == world.node.height()
        assert world.status(mine) == "paid"
        assert [node.rests_until > time.monotonic() for node in nodes(world)] == [True, *[False] * (count - 1)]


def show_far_block(provider: LyingRpc, height: int) -> None:
    """Let a provider report a head, and a block of that height whose header proves itself."""

    def tell(truth: Any, params: list[Any]) -> Any:
        if params[0] != hex(height):
            return truth
        lie = provider._truth("eth_getBlockByNumber", ["latest", False])
        assert isinstance(lie, dict)
        lie |= {"number": hex(height), "transactions": [], "logsBloom": "0x" + "00" * 256, "gasUsed": "0x0"}
        return lie | {"hash": wire.proved_hash(msgspec.convert(lie, wire.Header))}

    provider.lies |= {"eth_getBlockByNumber": tell, "eth_blockNumber": hex(height)}


@pytest.mark.parametrize("height", [COUNT_MAX + 1, 2**63, 2**70])
@pytest.mark.parametrize("place", [0, 1])
def test_a_height_beyond_any_row_is_its_providers_fault(world: World, height: int, place: int) -> None:
    show_far_block(world.providers[place], height)
    with structlog.testing.capture_logs() as logs:
        assert pay_and_scan(world) == "paid"
    assert world.cursor()[0] == world.node.height()
    assert {log["provider"] for log in logs if log["event"] == "provider.contradicted"} == {place + 1}


def test_units_beyond_any_row_are_their_providers_fault(world: World) -> None:
    world.providers[0].alter_amounts((2**256 - 1) // USDT_UNITS)
    with structlog.testing.capture_logs() as logs:
        assert pay_and_scan(world) == "paid"
    assert world.deposits("status", "amount_units") == [("credited", 10**19)]
    assert {log["provider"] for log in logs if log["event"] == "provider.contradicted"} == {1}


def test_an_invented_head_silences_no_other_provider(world: World) -> None:
    """It makes the others look late, but their blocks at a height still count."""
    mine = world.invoice()
    world.pay(mine)
    world.mine()
    world.poll(2)
    assert rows("SELECT status FROM deposits") == [("pending",)]
    liar = world.providers[0]
    liar.lies["eth_blockNumber"] = hex(10**9)
    liar.lies["eth_getBlockByNumber"] = other_hash
    for _ in range(3):
        reader(world.network, context().settings)._providers._looked_at = float("-inf")  # type: ignore[attr-defined]
        world.poll()
    assert rows("SELECT status FROM deposits") == [("pending",)]
    assert world.halted() == "providers disagree about a block"


def other_hash(truth: Any, _params: list[Any]) -> Any:
    """Return a block of another chain; its header proves itself and no more."""
    lie = truth and truth | {"parentHash": "0x" + "cc" * 32, "transactions": []}
    return lie and lie | {"hash": wire.proved_hash(msgspec.convert(lie, wire.Header))}


def test_a_node_that_contradicts_itself_is_skipped_within_the_query(world: World) -> None:
    """It shows the gateway's tip, and above it blocks with another parent."""
    tip = world.cursor()[0]
    world.providers[0].lies["eth_getBlockByNumber"] = lambda truth, params: (
        other_hash(truth, params) if truth and int(truth["number"], 16) > tip else truth
    )
    with structlog.testing.capture_logs() as logs:
        world.mine(3)
        world.poll(2)
    assert (world.cursor()[0], world.halted()) == (world.node.height(), "")
    assert {log["provider"] for log in logs if log["event"] == "provider.contradicted"} == {1}


def test_a_single_node_that_contradicts_itself_moves_nothing_and_is_named(
    database: str, anvil: Callable[..., Anvil]
) -> None:
    with World(database, anvil).served_by(1) as world:
        tip = world.cursor()
        world.providers[0].lies["eth_getBlockByNumber"] = lambda truth, params: (
            other_hash(truth, params) if truth and int(truth["number"], 16) > tip[0] else truth
        )
        with structlog.testing.capture_logs() as logs:
            world.mine(2)
            world.poll(2)
        assert world.cursor() == tip
        assert "provider.contradicted" in {log["event"] for log in logs}


def lead_away(provider: LyingRpc, fork: int) -> None:
    """Let a provider show a branch of empty blocks above a height."""
    hashes: dict[int, str] = {}
    empty = {"extraData": "0xabcd", "transactions": [], "logsBloom": "0x" + "00" * 256, "gasUsed": "0x0"}

    def tell(truth: Any, params: list[Any]) -> Any:
        number = int(truth["number"], 16) if truth else 0
        if number <= fork or params[0] != hex(number):
            return truth
        lie = truth | empty | {"parentHash": hashes.get(number - 1, truth["parentHash"])}
        hashes[number] = wire.proved_hash(msgspec.convert(lie, wire.Header)) or ""
        return lie | {"hash": hashes[number]}

    provider.lies |= {"eth_getBlockByNumber": tell, "eth_getLogs": []}


@pytest.mark.parametrize("first_is_usual", [True, False])
def test_a_provider_on_a_replaced_block_does_not_make_honest_ones_rest(
    database: str, anvil: Callable[..., Anvil], *, first_is_usual: bool
) -> None:
    """One of three, the one asked first, continues on a block that the others replaced: the scan follows it."""
    with World(database, anvil).served_by(3) as world:
        liar = 0 if first_is_usual else 2
        lead_away(world.providers[liar], world.cursor()[0])
        mine = world.invoice()
        world.pay(mine)
        world.mine(4)
        world.poll(2)
        assert (world.status(mine) == "paid") == (not first_is_usual)
        world.mine(rescan.BEHIND)
        world.poll(2)
        world.rescan()
        world.poll(4)
        assert (world.cursor()[0], world.halted(), world.status(mine)) == (world.node.height(), "", "paid")
        resting = [node.rests_until > time.monotonic() for node in nodes(world)]
        assert [rests for number, rests in enumerate(resting) if number != liar] == [False, False]


def test_a_node_of_another_chain_is_refused_until_it_is_right_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = reader(world.network, context().settings)._providers._nodes  # type: ignore[attr-defined]
    nodes[0]._verified_until = 0.0
    world.providers[0].lies["eth_chainId"] = "0x38"
    world.mine()
    world.poll()
    assert pay_and_scan(world) == "paid"
    world.providers[0].asked.clear()
    world.mine(2)
    world.poll(2)
    assert set(world.providers[0].asked) <= {"eth_chainId"}

    monkeypatch.setattr(net_node, "REFUSED_S", 0.0)
    nodes[0]._refused_until = nodes[0].rests_until = 0.0
    world.providers[0].lies.clear()
    world.mine()
    world.poll()
    assert "eth_getLogs" in world.providers[0].asked


def test_a_single_node_of_another_chain_moves_nothing(world: World) -> None:
    before = world.cursor()
    for provider in world.providers:
        provider.lies["eth_chainId"] = "0x38"
    for node in reader(world.network, context().settings)._providers._nodes:  # type: ignore[attr-defined]
        node._verified_until = 0.0

    assert pay_and_scan(world) == "check"
    assert world.cursor() == before


def test_one_provider_alone_cannot_date_a_block(world: World) -> None:
    """A block's time decides whether a payment came in time, and only a header with that time has its hash."""
    late = lambda truth, _params: truth and truth | {"timestamp": hex(int(truth["timestamp"], 16) + 86_400)}  # noqa: E731
    world.providers[0].lies["eth_getBlockByNumber"] = late
    assert pay_and_scan(world) == "paid", "another provider is asked"
    assert rows("SELECT bool_and(block_time < app_now() + interval '1 hour') FROM chain_blocks") == [(True,)]

    world.providers[1].failure = DOWN
    before = world.cursor()
    world.mine()
    world.poll()
    assert world.cursor() == before, "no other provider shows it"
    world.providers[0].lies.clear()
    world.poll(2)
    assert world.cursor() != before, "a proved header needs no other provider"


def test_headers_of_an_unknown_shape_stop_no_network(world: World) -> None:
    def forked(truth: Any, _params: list[Any]) -> Any:
        return truth and {name: value for name, value in truth.items() if name != "mixHash"}

    for provider in world.providers:
        provider.lies["eth_getBlockByNumber"] = forked
    assert pay_and_scan(world) == "paid"
    world.providers[1].failure = DOWN
    assert pay_and_scan(world) == "paid", "two providers agreed on such headers before"


def test_a_provider_on_its_own_fork_reverses_nothing(world: World, anvil: Callable[..., Anvil]) -> None:
    """Two providers disagree: the scan waits for an operator, or for one of them to give in."""
    assert pay_and_scan(world) == "paid"
    forked = world.providers[0]
    del anvil
    forked.lies["eth_getBlockByNumber"] = other_hash
    world.poll(3)
    assert (rows("SELECT status FROM deposits"), world.halted()) == (
        [("credited",)],
        "providers disagree about a block",
    )

    world.providers[1].failure = DOWN
    world.poll(3)
    assert (rows("SELECT status FROM deposits"), world.halted()) == (
        [("credited",)],
        "one provider alone shows that credited blocks were replaced",
    )

    forked.lies.clear()
    world.providers[1].failure = None
    assert pay_and_scan(world) == "paid"
    assert world.halted() == ""


def test_an_endless_step_ends_at_its_budget(database: str, anvil: Callable[..., Anvil]) -> None:
    with World(database, anvil, RPC_STEP_REQUESTS="40").served_by(1) as world:
        world.mine(20)
        world.providers[0].asked.clear()
        world.poll()

        assert asked(world.providers[0]) <= 41
        for _ in range(5):
            world.poll()
        assert world.cursor()[0] == world.node.height()
