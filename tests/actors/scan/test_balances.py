"""Coin that contracts pass on is found by balances, named by traces and counted once, on a real node."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NoReturn
from unittest.mock import Mock
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from actors import context
from actors.scan import balances, kept, observers, surplus
from actors.scan import rewind as scan_rewind
from actors.scan.reading import Left
from chains.base import Agreement, Block, ProviderError
from chains.net import budget
from chains.net.budget import BudgetSpentError
from chains.registry import reader
from models.db.base import execute, one, rows
from models.deposits import cursors, probes
from models.deposits.cursors import Cursor
from models.deposits.probes import TakenBack
from models.invoices import rows as invoices
from models.spends import signing_stops
from tests.actors.scan.world import ETHER, FORWARDER, World, replace_block
from tests.models.builders import CATALOGUE
from tests.models.treasury.builders import HOT, spend
from tests.peers.anvil import calldata
from tests.peers.json_rpc_node import Raw, Refusal
from tests.peers.lying_rpc import DOWN

NO_METHOD = Refusal(-32601, "the method does not exist")


def mute(world: World, *methods: str) -> None:
    for method in methods or ("trace_block", "debug_traceBlockByNumber"):
        world.providers[0].lies[method] = NO_METHOD


def test_coin_passed_on_by_a_contract_is_booked_under_its_transaction(world: World) -> None:
    mine = world.coin_invoice()
    txid = world.pay_by_contract(mine, ETHER)
    height = world.mine()
    world.catch_up()
    assert world.deposits() == []

    world.probe()

    assert world.deposits("txid", "ordinal", "status", "block_height") == [(txid, "trace:0", "pending", height)]
    world.confirm()
    assert world.status(mine) == "paid"


def test_the_call_tracer_names_the_transaction_if_trace_block_is_missing(world: World) -> None:
    mine = world.coin_invoice()
    mute(world, "trace_block")
    txid = world.pay_by_contract(mine, ETHER)
    world.advance()
    world.probe()

    assert world.deposits("txid", "ordinal") == [(txid, "trace:0")]


def test_without_traces_the_difference_is_booked_without_a_transaction(world: World) -> None:
    mine = world.coin_invoice()
    mute(world)
    world.mine(3)
    world.pay_by_contract(mine, ETHER)
    height = world.mine()
    world.advance(4)
    world.probe()

    address = mine.address.lower()
    assert world.deposits("txid", "ordinal", "block_height") == [("", f"probe:{address}:{height}", height)]
    world.poll()
    assert world.status(mine) == "paid"


def test_probing_again_changes_nothing(world: World) -> None:
    mine = world.coin_invoice()
    world.pay_by_contract(mine, ETHER)
    world.mine()
    for _ in range(3):
        world.confirm()
        world.probe()

    assert world.deposits("status") == [("credited",)]
    assert world.status(mine) == "paid"


def test_a_trace_that_names_booked_coin_later_does_not_count_it_twice(world: World) -> None:
    mine = world.coin_invoice()
    mute(world)
    world.pay_by_contract(mine, ETHER)
    world.advance()
    world.probe()

    world.providers[0].lies.clear()
    world.advance()
    world.probe()

    assert len(world.deposits()) == 1


def test_a_plain_transfer_in_the_same_period_is_counted_once(world: World) -> None:
    mine = world.coin_invoice(3 * ETHER)
    world.pay(mine, ETHER, currency="ETH")
    world.pay_by_contract(mine, 2 * ETHER)
    world.confirm_sent()
    world.probe()
    world.confirm()

    assert sorted(world.deposits("ordinal", "amount_units")) == [("native", ETHER), ("trace:0", 2 * ETHER)]
    assert world.status(mine) == "paid"


def test_a_reverted_call_is_not_booked(world: World) -> None:
    mine = world.coin_invoice()
    world.node.send(FORWARDER, value=ETHER, data=calldata("forward_and_revert(address)", mine.address.lower()))
    world._nonce += 1
    world.advance()
    world.probe()

    assert world.deposits() == []


def test_a_trace_that_the_balance_contradicts_is_not_booked(world: World) -> None:
    mine = world.coin_invoice()
    world.pay_by_contract(mine, ETHER)
    world.advance()

    def inflate(truth: list[dict[str, Any]], _params: list[Any]) -> list[dict[str, Any]]:
        return [trace | {"action": trace["action"] | {"value": hex(50 * ETHER)}} for trace in truth]

    world.providers[0].lies["trace_block"] = inflate
    world.probe()

    assert world.deposits("amount_units", "txid") == [(ETHER, "")]


def test_a_hidden_plain_transfer_is_booked_under_its_own_key(world: World) -> None:
    """The scan's provider left it out; when another reading finds it, it is the same deposit."""
    mine = world.coin_invoice()
    world.providers[0].hide_transactions()
    txid = world.pay(mine, ETHER, currency="ETH")
    world.advance()
    world.probe()
    # No provider could name its transaction.
    assert world.deposits("txid", "amount_units") == [("", ETHER)]

    world.providers[0].lies.clear()
    world.advance(8)
    world.rescan()

    assert world.deposits("txid", "ordinal", "amount_units") == [(txid, "native", ETHER)]
    world.confirm()
    assert (world.status(mine), len(world.deposits())) == ("paid", 1)


def test_a_reorg_reverses_the_deposit_and_it_is_found_again(world: World) -> None:
    mine = world.coin_invoice()
    mute(world)
    world.pay_by_contract(mine, ETHER)
    world.confirm_sent()
    world.probe()
    world.poll()
    assert world.status(mine) == "paid"

    world.reorg(2)
    world.advance()
    assert world.deposits("status") == [("reversed",)]
    world.probe()
    assert world.status(mine) == "check"

    world.node.ask("eth_sendTransaction", _forward(mine.address.lower()))
    world.confirm_sent()
    world.probe()
    world.poll()
    assert (world.status(mine), one("SELECT count(*) FROM deposits WHERE status <> 'reversed'")) == ("paid", (1,))


def _forward(to: str) -> dict[str, str]:
    return {
        "from": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
        "to": FORWARDER,
        "value": hex(ETHER),
        "data": calldata("forward(address)", to),
        "gas": hex(500_000),
    }


def test_swept_coin_is_no_surplus_and_later_coin_is(world: World) -> None:
    mine = world.coin_invoice()
    world.pay(mine, ETHER, currency="ETH")
    world.confirm_sent()
    address = mine.address.lower()
    world.node.ask("anvil_setBalance", address, "0x0")
    height = world.mine()
    block = world.node.ask("eth_getBlockByNumber", hex(height), False)
    spend(purpose="sweep", sender=address, recipient=HOT, token_units=ETHER, mined=(height, block["hash"]))
    world.confirm()
    world.probe()
    assert len(world.deposits()) == 1

    world.pay_by_contract(mine, ETHER)
    world.confirm_sent()
    world.probe()
    assert sorted(world.deposits("ordinal")) == [("native",), ("trace:0",)]


def test_wallets_are_probed_in_rotation(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balances, "WALLETS_PER_STEP", 2)
    for number in range(5):
        probes.watch_wallet(["ethereum"], f"0x{number:040x}")
    seen: list[str] = []
    monkeypatch.setattr(balances.deposits, "match", lambda _family, due: seen.extend(due) or {})  # type: ignore[func-returns-value]
    for _ in range(3):
        world.probe()
    assert (len(seen), len(set(seen))) == (6, 5), "one without an owner has its turn too"


def test_an_address_without_an_owner_takes_its_turn_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    mute(world)
    _, height = passed_on(world)
    world.catch_up()
    world.probe()
    world.reorg(world.node.height() - height + 1)
    world.mine()
    world.catch_up()
    execute("DELETE FROM balance_probes")
    execute("UPDATE invoices SET expires_at = app_now() - interval '1 day'")
    monkeypatch.setattr(balances.deposits, "match", lambda _family, _due: {})
    reached = world.cursor()[0]

    def due() -> list[str]:
        return probes.due_again("ethereum", scanned=reached, further=0, limit=9)

    assert len(due()) == 1
    world.probe()
    assert due() == []


def test_a_node_without_old_balances_dates_the_surplus_later(world: World) -> None:
    mine = world.coin_invoice()
    mute(world)
    world.pay_by_contract(mine, ETHER)
    world.mine()
    world.advance(5)
    newest = world.cursor()[1]

    def forgetful(truth: str, params: list[Any]) -> object:
        return truth if params[1].get("blockHash") == newest else Refusal(-32000, "missing trie node")

    world.providers[0].lies["eth_getBalance"] = forgetful
    world.probe()

    assert world.deposits("amount_units", "block_height") == [(ETHER, world.cursor()[0])]


def test_networks_that_offer_no_coin_are_not_probed(start: Callable[..., World]) -> None:
    start(network="base")
    balances.probe_balances("base")
    assert CATALOGUE.networks["base"].native is None
    assert rows("SELECT 1 FROM balance_probes") == []


def test_a_surplus_waits_until_another_provider_has_read_its_block(start: Callable[..., World]) -> None:
    world = start(2)
    mine = world.coin_invoice()
    world.providers[0].cut_transactions()
    world.decoy()
    txid = world.pay(mine, ETHER, currency="ETH")
    world.advance()
    world.providers[1].lies["eth_getBlockReceipts"] = DOWN
    with capture_logs() as lines:
        world.probe()
    assert "probe.no_second_reading" in [line["event"] for line in lines]
    assert world.deposits() == [], "it is not booked as coin without a transaction"

    world.providers[1].lies.clear()
    world.probe()
    assert world.deposits("txid") == [(txid,)]


def silenced(start: Callable[..., World]) -> World:
    """Pay an invoice by a contract while the second of two providers shows no block again."""
    world = start(2)
    passed_on(world)
    world.catch_up()
    world.providers[1].lies["eth_getBlockReceipts"] = DOWN
    return world


def test_a_surplus_whose_block_no_other_provider_shows_for_long_is_booked_without_a_transaction(
    start: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = silenced(start)
    world.probe()
    assert world.deposits() == []
    monkeypatch.setattr(balances, "TRACE_PATIENCE_S", -3_600)
    world.advance()
    world.probe()
    assert world.deposits("txid", "amount_units", "status") == [("", ETHER, "pending")]


def test_no_surplus_is_booked_without_a_second_reading_while_the_network_is_stopped(
    start: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A spend that the database lost may have brought it."""
    world = silenced(start)
    monkeypatch.setattr(balances, "TRACE_PATIENCE_S", -3_600)
    monkeypatch.setattr(signing_stops, "read", lambda _network: object())
    world.probe()
    assert world.deposits() == []


def test_an_address_with_a_surplus_is_due_beyond_the_block_that_showed_it(start: Callable[..., World]) -> None:
    world = silenced(start)
    execute("UPDATE invoices SET expires_at = app_now() - interval '1 day'")
    world.probe()
    assert rows("SELECT due_until = (SELECT block_time FROM chain_cursors) FROM balance_probes") == [(True,)]
    world.advance()
    assert len(probes.due_open("ethereum", limit=9)) == 1


def test_a_block_with_a_departure_that_no_row_explains_waits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its coin may be our own, whichever address the departure paid."""
    passed_on(world)
    world.catch_up()
    again = observers.Again(recorded=0, left=Left(unexplained=(Mock(),)))
    with monkeypatch.context() as patch:
        patch.setattr(observers, "note_again", lambda *_: again)
        world.probe()
    assert world.deposits() == []
    world.probe()
    assert world.deposits("amount_units") == [(ETHER,)]


def test_another_provider_reads_the_block_again_each_time(
    start: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = start(3)
    passed_on(world)
    world.catch_up()

    def busy(*_args: object, **_fields: object) -> NoReturn:
        raise ProviderError("busy")

    monkeypatch.setattr("chains.evm.reader.EvmReader.internal_transfers", busy)
    readers: list[tuple[Any, ...]] = []
    for _ in range(3):
        world.probe()
        readers += rows("SELECT reread_by FROM balance_probes")
    assert "" not in {mark for (mark,) in readers}
    assert readers[0] != readers[1] != readers[2]


def test_no_surplus_is_booked_if_an_own_spend_began_while_it_was_explained(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_on(world)
    world.catch_up()
    answers = iter([False, True])
    with monkeypatch.context() as patch:
        patch.setattr(balances.addresses, "is_in_motion", lambda *_: next(answers))
        world.probe()
    assert world.deposits() == []
    world.probe()
    assert world.deposits("amount_units") == [(ETHER,)]


@pytest.mark.parametrize("providers", [1, 3])
def test_own_gas_that_a_reorg_put_into_an_earlier_block_is_no_payment(
    start: Callable[..., World], providers: int
) -> None:
    """The spend's row names the block of the old branch, which is above the scan. No provider lies."""
    world = start(providers)
    mine = world.coin_invoice()
    world.pay_by_contract(mine, ETHER)
    height = world.mine()
    mute(world)
    world.catch_up()
    made = spend(
        purpose="gas", sender=HOT, recipient=mine.address.lower(), token_units=ETHER, mined=(height + 1, "0xold")
    )
    world.probe()
    assert world.deposits() == []

    # The signer sees the spend in its block.
    block = world.node.ask("eth_getBlockByNumber", hex(height), False)
    execute("UPDATE spends SET mined_height = %s, mined_hash = %s WHERE id = %s", (height, block["hash"], made))
    execute("UPDATE spend_movements SET height = %s", (height,))
    for _ in range(2):
        world.advance(3)
        world.probe()
    assert world.deposits() == []


@pytest.mark.parametrize("providers", [1, 3])
def test_coin_found_after_its_block_was_dropped_is_dated_to_that_block(
    start: Callable[..., World], monkeypatch: pytest.MonkeyPatch, providers: int
) -> None:
    """It came in time, and more blocks passed before the first probe than the scan keeps."""
    monkeypatch.setattr(cursors, "BLOCKS_SETTLED", 3)
    world = start(providers)
    world.advance(3)
    _, height = passed_on(world)
    world.advance(6)
    execute("DELETE FROM chain_blocks WHERE height <= %s", (height + 2,))
    world.probe()
    assert world.deposits("block_height", "amount_units") == [(height, ETHER)]


def test_a_header_of_one_provider_dates_no_coin_whose_block_was_dropped(
    start: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursors, "BLOCKS_SETTLED", 3)
    world = start(3)
    world.advance(3)
    _, height = passed_on(world)
    world.advance(6)
    execute("DELETE FROM chain_blocks WHERE height <= %s", (height + 2,))
    replace_block(world, 0, height, whole=False)
    world.probe()
    assert world.deposits("block_height") == [(height,)]


def test_coin_from_before_the_first_scanned_block_is_dated_to_that_block(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursors, "BLOCKS_SETTLED", 3)
    _, height = passed_on(world)
    world.advance(6)
    execute("DELETE FROM chain_blocks WHERE height <= %s", (height + 4,))
    monkeypatch.setattr(cursors, "started_height", lambda _network: height + 2)
    world.probe()
    assert world.deposits("block_height") == [(height + 2,)]


def test_nothing_is_booked_in_a_block_that_a_reorg_replaced_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, height = passed_on(world)
    world.catch_up()

    def replaced_meanwhile(*_: object) -> tuple[()]:
        world.reorg(world.node.height() - height + 1)
        world.mine()
        world.catch_up()
        return ()

    monkeypatch.setattr("chains.evm.reader.EvmReader.internal_transfers", replaced_meanwhile)
    world.probe()
    assert world.deposits() == []


def block_at(height: int, name: str) -> Block:
    return Block(
        height=height, hash=name, parent_height=height - 1, parent_hash="0x", time=datetime(2026, 1, 1, tzinfo=UTC)
    )


@pytest.mark.parametrize(
    ("voices", "wanted", "agreed"),
    [
        ({"0xa": (2, 1)}, "", "0xa"),
        ({"0xa": (1, 2), "0xb": (2, 1)}, "", "0xb"),
        ({"0xa": (1, 1), "0xb": (1, 1)}, "", None),
        ({"0xb": (2, 1)}, "0xb", "0xb"),
        ({"0xb": (1, 2)}, "0xb", None),
    ],
)
def test_a_block_that_is_not_kept_counts_if_more_providers_show_it(
    voices: dict[str, tuple[int, int]], wanted: str, agreed: str | None
) -> None:
    """The first provider shows 0xa, and the next ones 0xb."""
    shown = iter(["0xa", "0xb", "0xb"])
    chain = Mock(
        providers=3,
        block=lambda height: block_at(height, next(shown)),
        agreement=lambda _height, name: Agreement(same=voices[name][0], other=voices[name][1]),
    )
    block = kept.agreed(chain, 7, block_hash=wanted)
    assert (block and block.hash) == agreed


def test_a_missing_block_is_none() -> None:
    assert kept.agreed(Mock(providers=3, block=lambda _height: None), 7) is None


def not_traceable(world: World, *heights: int) -> None:
    """Make all providers fail at traces of these blocks, as they do if a trace is too long."""

    def fail(truth: object, params: list[Any]) -> object:
        return DOWN if int(params[0], 16) in heights else truth

    for provider in world.providers:
        for method in ("trace_block", "debug_traceBlockByNumber"):
            provider.lies[method] = fail


def passed_on(world: World) -> tuple[UUID, int]:
    """Pay an invoice by a contract; return it and its block."""
    mine = world.coin_invoice()
    world.pay_by_contract(mine, ETHER)
    return mine.id, world.mine()


def test_a_block_that_cannot_be_traced_delays_no_other_address(world: World) -> None:
    _, heavy = passed_on(world)
    others, _ = passed_on(world)
    world.catch_up()
    not_traceable(world, heavy)
    with capture_logs() as lines:
        world.probe()
    assert world.deposits("owner_id") == [(others,)]
    assert [line["height"] for line in lines if line["event"] == "deposit.without_transaction"] == []
    assert "probe.failed" in [line["event"] for line in lines]


def test_a_deposit_recorded_during_the_balance_query_is_not_booked_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_on(world)
    world.catch_up()
    sums = itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(probes, "deposited_units", lambda *_, **__: next(sums))
        world.probe()
    assert world.deposits() == []
    world.probe()
    assert world.deposits("amount_units") == [(ETHER,)]


def test_a_step_ends_after_some_failures_and_the_next_begins_with_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balances, "FAILURES_PER_STEP", 1)
    _, heavy = passed_on(world)
    others, _ = passed_on(world)
    world.catch_up()
    not_traceable(world, heavy)
    world.probe()
    assert world.deposits() == []
    world.advance()
    world.probe()
    assert world.deposits("owner_id") == [(others,)]


def test_coin_that_cannot_be_traced_for_long_is_booked_without_a_transaction(world: World) -> None:
    mine, heavy = passed_on(world)
    world.catch_up()
    overloaded = Raw(b"overloaded", status=503)
    world.providers[0].lies |= {"trace_block": overloaded, "debug_traceBlockByNumber": overloaded}
    world.probe()
    assert world.deposits() == []

    world.pass_time(balances.TRACE_PATIENCE_S + 1)
    world.advance()
    world.probe()
    assert world.deposits("owner_id", "txid", "block_height") == [(mine, "", heavy)]


def rewind(world: World, height: int) -> None:
    process = context.context()
    chain = reader(world.network, process.settings)
    scan_rewind.rewind(process, world.network, chain, height, is_forced=True)


@pytest.mark.parametrize("hours", [0, 30])
@pytest.mark.parametrize("is_traced", [True, False])
def test_coin_reversed_by_a_rewind_is_found_in_its_block_again(world: World, hours: int, *, is_traced: bool) -> None:
    """The invoice may have ended long ago, so that only its balance shows the payment."""
    if not is_traced:
        mute(world)
    before = world.cursor()[0]
    mine, height = passed_on(world)
    world.catch_up()
    world.probe()
    world.confirm()
    world.advance(6)
    world.probe()
    booked = world.deposits("txid", "ordinal", "status", "block_height")
    assert [row[2:] for row in booked] == [("credited", height)]
    if hours:
        world.pass_time(hours * 3600)
        execute("UPDATE rates SET quoted_at = app_now()")

    rewind(world, before)
    assert world.deposits("status") == [("reversed",)]
    for _ in range(3):
        world.advance(3)
        world.probe()
        world.poll()
    assert world.deposits("txid", "ordinal", "status", "block_height") == booked
    assert invoices.reread(mine).status == "paid"


def test_an_address_is_not_probed_again_once_its_reversed_coin_is_explained(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balances, "RETURN_S", 0)
    mine, _ = passed_on(world)
    world.catch_up()
    world.probe()
    world.reorg(1)
    world.advance(3)
    assert world.deposits("status") == [("reversed",)]
    execute("UPDATE invoices SET expires_at = app_now() - interval '1 day' WHERE id = %s", (mine,))
    execute("UPDATE balance_probes SET due_until = NULL")
    looked_at = "SELECT height = (SELECT height FROM chain_cursors) FROM balance_probes"
    world.probe()
    assert rows(looked_at) == [(True,)]
    world.advance()
    world.probe()
    assert rows(looked_at) == [(False,)]


def found_again(world: World, height: int) -> None:
    """Scan on after a rewind, with probes of balances."""
    for _ in range(3):
        world.advance(3)
        world.probe()
        world.poll()
    assert world.deposits("status", "round", "block_height") == [("credited", 1, height)]


@pytest.mark.parametrize("is_named_first", [True, False])
def test_coin_that_returns_under_another_transaction_is_the_same_deposit(world: World, *, is_named_first: bool) -> None:
    """The deposit keeps its shares and refunds, so that none is paid twice."""
    before = world.cursor()[0]
    lies = world.providers[0].lies
    if not is_named_first:
        mute(world)
    mine, height = passed_on(world)
    world.catch_up()
    world.probe()
    world.confirm()
    (first,) = world.deposits("id", "status", "ordinal LIKE 'trace:%%'")
    assert first[1:] == ("credited", is_named_first)

    rewind(world, before)
    if is_named_first:
        mute(world)
    else:
        lies.clear()
    found_again(world, height)
    assert world.deposits("id") == [first[:1]]
    # It has the known transaction's name, before or after.
    assert world.deposits("ordinal", "txid <> ''") == [("trace:0", True)]
    assert invoices.reread(mine).status == "paid"


def test_coin_that_returns_is_dated_to_no_block_that_left_the_chain_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.cursor()[0]
    mute(world)
    _, height = passed_on(world)
    world.catch_up()
    world.probe()
    (first,) = world.deposits("id", "block_height", "block_hash")
    rewind(world, before)
    monkeypatch.setattr(surplus.Booking, "_own_block", lambda *_: block_at(height, "0xgone"))
    found_again(world, height)
    assert world.deposits("id", "block_height", "block_hash") == [first]


def test_few_deposits_return_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surplus, "RETURNED_MAX", 1)
    before = world.cursor()[0]
    mine = world.coin_invoice(3 * ETHER)
    for units in (1, 2):
        world.pay_by_contract(mine, units * ETHER)
    world.mine()
    world.catch_up()
    world.probe()
    assert len(world.deposits()) == 2
    rewind(world, before)
    mute(world)
    world.catch_up()
    world.probe()
    live = sorted(row[0].split(":")[0] for row in world.deposits("ordinal", "status") if row[1] == "pending")
    assert live == ["probe", "trace"]


def test_a_plain_transfer_hidden_before_a_rewind_is_the_same_deposit(world: World) -> None:
    before = world.cursor()[0]
    mine = world.coin_invoice()
    world.providers[0].hide_transactions()
    txid = world.pay(mine, ETHER, currency="ETH")
    height = world.mine()
    world.catch_up()
    world.probe()
    world.confirm()
    (first,) = world.deposits("id", "txid", "status")
    assert first[1:] == ("", "credited")

    rewind(world, before)
    world.providers[0].lies.clear()
    found_again(world, height)
    assert world.deposits("id", "txid", "ordinal") == [(first[0], txid, "native")]


def paid_out(read: Callable[..., list[TakenBack]]) -> Callable[..., list[TakenBack]]:
    """Read deposits as if shares of them had been released."""
    return lambda *key: [each._replace(is_paid_out=True) for each in read(*key)]


def test_a_paid_out_sum_that_returns_in_parts_is_the_same_deposit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "taken_back", paid_out(probes.taken_back))
    before = world.cursor()[0]
    mute(world)
    mine = world.coin_invoice(2 * ETHER)
    world.pay_by_contract(mine, ETHER)
    world.pay_by_contract(mine, ETHER)
    height = world.mine()
    world.catch_up()
    world.probe()
    world.confirm()
    booked = world.deposits("id", "ordinal", "amount_units")
    assert [row[2] for row in booked] == [2 * ETHER]

    rewind(world, before)
    world.providers[0].lies.clear()
    found_again(world, height)
    assert world.deposits("id", "ordinal", "amount_units") == booked


def test_coin_beyond_the_reversed_sum_is_new(world: World) -> None:
    before = world.cursor()[0]
    mute(world)
    mine = world.coin_invoice(3 * ETHER)
    world.pay_by_contract(mine, ETHER)
    world.advance()
    world.probe()
    (first,) = world.deposits("id")
    rewind(world, before)
    assert world.deposits("status") == [("reversed",)]

    world.pay_by_contract(mine, 2 * ETHER)
    world.advance(3)
    world.probe()
    world.advance()
    world.probe()
    units = {row[0]: row[1] for row in world.deposits("id", "amount_units", "status") if row[2] != "reversed"}
    assert units.pop(first[0]) == ETHER
    assert list(units.values()) == [2 * ETHER]


def test_coin_that_returns_in_a_later_block_long_after_its_invoice_ended_is_credited_again(world: World) -> None:
    mute(world)
    mine, height = passed_on(world)
    world.catch_up()
    world.probe()
    world.confirm()
    world.poll()
    assert world.deposits("status") == [("credited",)]
    execute("UPDATE invoices SET expires_at = app_now() - interval '1 day' WHERE id = %s", (mine,))
    world.reorg(world.node.height() - height + 1)
    world.mine()
    world.catch_up()
    world.probe()
    assert world.deposits("status") == [("reversed",)]

    world.node.ask("eth_sendTransaction", _forward(invoices.reread(mine).address.lower()))
    world.mine()
    world.catch_up()
    for _ in range(3):
        world.probe()
        world.advance(world.network.confirmations)
    # Its invoice took it in time before; the returned coin came after its end.
    assert world.deposits("status", "round") == [("confirmed", 1)]


@pytest.mark.parametrize("is_paid_out", [False, True])
def test_another_payment_takes_no_name_of_one_that_left_the_chain_unless_that_was_paid_out(
    world: World, monkeypatch: pytest.MonkeyPatch, *, is_paid_out: bool
) -> None:
    mine = world.coin_invoice(2 * ETHER)
    lost = world.pay_by_contract(mine, ETHER)
    height = world.mine()
    world.catch_up()
    world.probe()
    world.reorg(world.node.height() - height + 1)
    world.advance(2)
    assert world.deposits("status", "txid") == [("reversed", lost)]
    if is_paid_out:
        monkeypatch.setattr(probes, "taken_back", paid_out(probes.taken_back))

    paid = world.node.ask("eth_sendTransaction", _forward(mine.address.lower()) | {"value": hex(2 * ETHER)})
    world.mine()
    world.catch_up()
    world.probe()
    live = {row[1:] for row in world.deposits("status", "txid", "amount_units") if row[0] != "reversed"}
    assert live == ({(lost, ETHER), ("", ETHER)} if is_paid_out else {(paid, 2 * ETHER)})


def test_a_probe_under_way_during_a_rewind_explains_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = world.cursor()[0]
    mine = world.coin_invoice()
    world.pay(mine, ETHER, currency="ETH")
    world.confirm_sent()
    moved = balances.addresses.is_in_motion

    def rewound_meanwhile(*args: Any) -> bool:
        rewind(world, before)
        return moved(*args)

    monkeypatch.setattr(balances.addresses, "is_in_motion", rewound_meanwhile)
    monkeypatch.setattr(balances._Probe, "_surplus", lambda *_: 0)
    world.probe()
    assert rows("SELECT height FROM balance_probes") == [(None,)]


def test_a_step_out_of_time_ends_and_only_its_first_address_waits_for_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_on(world)
    passed_on(world)
    world.catch_up()
    asked: list[str] = []

    def out_of_time(probe: balances._Probe, _cursor: object) -> None:
        asked.append(probe._address)
        if len(asked) % 2 == 0:
            raise BudgetSpentError("the step has taken long enough")
        probe._note(None)

    monkeypatch.setattr(balances._Probe, "run", out_of_time)
    world.probe()
    world.probe()
    assert asked[2] == asked[1], "another address used up its time"
    asked.append("")
    world.probe()
    asked.append("")
    world.probe()
    assert asked[5] != asked[7], "it needs a whole step"


def test_a_step_out_of_time_does_not_mean_that_traces_fail(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    passed_on(world)
    world.catch_up()
    world.pass_time(balances.TRACE_PATIENCE_S + 1)
    world.advance()

    def out_of_time(*_args: object, **_fields: object) -> NoReturn:
        raise BudgetSpentError("the step has taken long enough")

    with monkeypatch.context() as patch:
        patch.setattr(balances, "part", out_of_time)
        world.probe()
    assert world.deposits() == []
    with monkeypatch.context() as patch:
        patch.setattr("chains.evm.reader.EvmReader.reread", out_of_time)
        world.probe()
    assert world.deposits() == []
    world.probe()
    assert world.deposits("ordinal") == [("trace:0",)]


def test_a_trace_that_takes_more_than_its_part_of_a_step_has_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its payer could hold up all other addresses, and its own would never be booked."""
    passed_on(world)
    world.catch_up()

    def too_long(*_args: object, **_fields: object) -> NoReturn:
        raise BudgetSpentError("the step has taken long enough")

    monkeypatch.setattr("chains.evm.reader.EvmReader.internal_transfers", too_long)
    others, _ = passed_on(world)
    world.catch_up()
    with capture_logs() as lines:
        world.probe()
    assert [line["event"] for line in lines].count("probe.failed") == 2
    assert world.deposits() == []
    world.pass_time(balances.TRACE_PATIENCE_S + 1)
    world.advance()
    world.probe()
    assert [row[0].split(":")[0] for row in world.deposits("ordinal")] == ["probe", "probe"]
    assert (others,) in world.deposits("owner_id")


def test_after_a_long_preparation_the_first_trace_alone_takes_the_rest_of_a_step(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the time of its trace, and with it its patience, would never come. Another one begins the next step."""
    first, _ = passed_on(world)
    passed_on(world)
    world.catch_up()
    world.pass_time(balances.TRACE_PATIENCE_S + 1)
    world.advance()
    reread = balances._Probe._grown_in

    def slow(probe: balances._Probe, cursor: Cursor) -> object:
        whole = budget._current.get()
        assert whole is not None
        whole.deadline = time.monotonic() + 0.4 * whole.seconds
        return reread(probe, cursor)

    def too_long(*_args: object, **_fields: object) -> NoReturn:
        raise BudgetSpentError("the step has taken long enough")

    monkeypatch.setattr(balances._Probe, "_grown_in", slow)
    monkeypatch.setattr("chains.evm.reader.EvmReader.internal_transfers", too_long)
    world.probe()
    assert world.deposits("owner_id", "txid") == [(first, "")]


def test_coin_that_was_dated_later_while_its_address_was_probed_is_not_found_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_on(world)
    world.catch_up()
    compared = balances._Probe._surplus

    def explained_meanwhile(probe: balances._Probe, height: int, block_hash: str) -> int:
        units = compared(probe, height, block_hash)
        probes.rise("ethereum", probe._address, kind="invoice", height=world.cursor()[0])
        return units

    monkeypatch.setattr(balances._Probe, "_surplus", explained_meanwhile)
    monkeypatch.setattr(balances._Probe, "_grown_in", lambda probe, _cursor: probe._chain.block(world.cursor()[0]))
    world.probe()
    assert world.deposits() == []


def test_an_address_that_takes_whole_steps_starves_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    heavy = world.coin_invoice()
    world.pay_by_contract(heavy, ETHER)
    world.advance()
    world.probe()
    world.reorg(1)
    world.advance(2)
    assert world.deposits("status") == [("reversed",)]
    other, _ = passed_on(world)
    world.catch_up()
    run = balances._Probe.run

    def out_of_time(probe: balances._Probe, cursor: Cursor) -> None:
        if probe._address == heavy.address.lower():
            raise BudgetSpentError("the step has taken long enough")
        run(probe, cursor)

    monkeypatch.setattr(balances._Probe, "run", out_of_time)
    for _ in range(3):
        world.probe()
        world.advance()
    assert world.deposits("owner_id")[1:] == [(other,)]


def test_more_coin_in_the_height_of_returned_coin_without_a_transaction_is_a_deposit_too(world: World) -> None:
    mute(world)
    mine = world.coin_invoice(3 * ETHER)
    world.pay_by_contract(mine, ETHER)
    height = world.mine()
    world.catch_up()
    world.probe()
    world.reorg(1)
    world.catch_up()
    world.node.ask("anvil_rollback", world.node.height() - height + 1)
    world.pay_by_contract(mine, ETHER)
    world.pay_by_contract(mine, 2 * ETHER)
    assert world.mine() == height
    world.mine(2)
    world.catch_up()
    world.probe()
    name = f"probe:{mine.address.lower()}:{height}"
    assert sorted(world.deposits("ordinal", "amount_units")) == [(name, ETHER), (f"{name}:1", 2 * ETHER)]


KEPT_STATES = 4  # of geth: 128


def forget_old_states(world: World) -> None:
    """Let all providers lack balances and traces of all but the newest blocks, as full nodes do."""

    def forgetful(truth: str, params: list[Any]) -> object:
        block = world.node.ask("eth_getBlockByHash", params[1]["blockHash"], False)
        is_kept = int(block["number"], 16) > world.node.height() - KEPT_STATES
        return truth if is_kept else Refusal(-32000, "missing trie node")

    for provider in world.providers:
        provider.lies["eth_getBalance"] = forgetful
        for method in ("trace_block", "debug_traceBlockByNumber"):
            provider.lies[method] = Refusal(-32000, "required historical state unavailable")


def witness(world: World) -> None:
    execute("UPDATE deposit_quorums SET next_attempt_at = app_now()")
    world.witness()
