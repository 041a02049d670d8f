"""Witnesses of coin that contracts pass on compare an address's balance with all its deposits, on a real node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from actors import context
from actors.scan import balances, rescan, surplus, totals, witnesses
from chains.base import Agreement, Total
from chains.evm.reader import EvmReader
from chains.net.budget import BudgetSpentError
from chains.registry import reader
from models.db.base import execute, rows
from models.deposits import probes
from models.deposits.probes import Counted
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from tests.actors.scan.test_balances import forget_old_states, mute, passed_on, rewind, witness
from tests.actors.scan.test_lying_providers import other_hash
from tests.actors.scan.world import ETHER, STRANGER, World, replace_block
from tests.models.ledger.sharing import share_with
from tests.peers.json_rpc_node import Refusal
from tests.peers.lying_rpc import DOWN

Start = Callable[..., World]


@pytest.fixture
def start(start: Start) -> Start:
    """Begin scans whose deposits all need witnesses, by two providers by default."""
    return lambda providers=2, **env: start(providers, **{"QUORUM_USD": "1"} | env)


def height_of(world: World, params: list[Any]) -> int:
    """Return the height of the block in a question about a balance."""
    return int(world.node.ask("eth_getBlockByHash", params[1]["blockHash"], False)["number"], 16)


def inflate(world: World, of: InvoiceRow, units: Callable[[int], int]) -> None:
    """Let the first provider add units to an address's balance, by the height of the block."""

    def richer(truth: str, params: list[Any]) -> str:
        is_mine = params[0].lower() == of.address.lower()
        return hex(int(truth, 16) + (units(height_of(world, params)) if is_mine else 0))

    world.providers[0].lies["eth_getBalance"] = richer


def invent_traces(world: World, of: InvoiceRow, txid: str, count: int, *, at: int, units: int = ETHER) -> None:
    """Let the first provider show calls that pass units on to an address."""
    trace = {
        "action": {"from": STRANGER, "to": of.address.lower(), "value": hex(units), "callType": "call"},
        "type": "call", "transactionHash": txid, "blockHash": None,
    }  # fmt: skip
    world.providers[0].lies["trace_block"] = lambda _truth, params: (
        [trace | {"traceAddress": [place]} for place in range(count)] if int(params[0], 16) == at else []
    )


def pay_unseen(world: World, of: InvoiceRow) -> tuple[str, int]:
    """Pay one ether in a block whose transactions the first provider hides; return the transaction and the block."""
    world.providers[0].cut_transactions()
    world.decoy()
    txid = world.pay(of, ETHER, currency="ETH")
    height = world.mine()
    world.mine()
    return txid, height


def settle(world: World, *, rounds: int = 3) -> None:
    """Probe, ask witnesses and credit, several times."""
    for _ in range(rounds):
        world.probe()
        witness(world)
        world.poll()
        world.advance()


def balance(world: World, of: InvoiceRow) -> int:
    return int(world.node.ask("eth_getBalance", of.address, "latest"), 16)


def confirmed(world: World) -> int:
    return sum(row[0] for row in world.deposits("amount_units", "status") if row[1] in {"confirmed", "credited"})


def buried(world: World, *, units: int = ETHER) -> tuple[InvoiceRow, int]:
    """Pay an invoice by a contract, and bury the block; return both."""
    mine = world.coin_invoice()
    world.pay_by_contract(mine, units)
    height = world.mine()
    world.advance(8)
    return mine, height


def test_the_usual_provider_hides_no_coin_by_another_header(start: Start) -> None:
    world = start(3)
    mine, height = buried(world)
    replace_block(world, 0, height, whole=False)
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER


def test_the_second_reader_hides_no_coin_by_another_block(start: Start) -> None:
    """The block is asked of the next provider."""
    world = start(3)
    mine, height = buried(world)
    world.rescan()
    replace_block(world, 1, height, whole=True)
    world.providers[1].lies["eth_getBlockReceipts"] = lambda truth, params: [] if params[0] == hex(height) else truth
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER


@pytest.mark.parametrize("at_once", [1, balances.LATE_ASKED_MAX + 1])
def test_payments_that_the_second_reader_invents_use_up_no_coin(start: Start, at_once: int) -> None:
    """It invents others at each reading of the block."""
    world = start(3)
    mine, height = buried(world)
    world.rescan()
    block = world.node.ask("eth_getBlockByNumber", hex(height), True)
    count = 0

    def invented(number: int) -> dict[str, str]:
        return {
            "hash": f"0x{0xEE0000 + number:064x}", "from": STRANGER, "to": mine.address.lower(), "value": hex(ETHER),
            "input": "0x", "blockHash": block["hash"], "blockNumber": hex(height),
            "transactionIndex": hex(len(block["transactions"]) + number % at_once), "nonce": "0x0", "gas": "0x5208",
            "gasPrice": "0x1", "type": "0x0", "v": "0x0", "r": "0x0", "s": "0x0",
        }  # fmt: skip

    def numbers() -> range:
        return range(count - at_once, count)

    def listed(truth: Any, params: list[Any]) -> Any:
        nonlocal count
        if truth is None or params != [hex(height), True]:
            return truth
        count += at_once
        return truth | {"transactions": [*truth["transactions"], *map(invented, numbers())]}

    def outcomes(truth: Any, params: list[Any]) -> Any:
        common = {"blockHash": block["hash"], "blockNumber": hex(height), "status": "0x1", "logs": []}
        made = [common | {"transactionHash": invented(each)["hash"]} for each in numbers()]
        return [*truth, *made] if params[0] == hex(height) else truth

    world.providers[1].lies |= {"eth_getBlockByNumber": listed, "eth_getBlockReceipts": outcomes}
    with mock.patch.object(EvmReader, "listing", autospec=True, side_effect=EvmReader.listing) as asked:
        world.probe()
    assert asked.call_count == min(at_once, balances.LATE_ASKED_MAX)
    assert statuses(world) == {"trace": "pending"}
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER


def test_a_payment_that_the_first_reading_hid_is_no_hidden_coin(start: Start) -> None:
    """The others show it, so that it is recorded under its own transaction."""
    world = start(3)
    mine = world.coin_invoice()
    txid, height = pay_unseen(world, mine)
    world.catch_up()
    world.probe()
    assert world.deposits("txid", "ordinal", "block_height") == [(txid, "native", height)]


@pytest.mark.parametrize("is_plain", [False, True])
def test_coin_in_time_is_credited_after_an_outage_of_hours(start: Start, *, is_plain: bool) -> None:
    world = start(3)
    mine = world.coin_invoice()
    if is_plain:
        world.pay(mine, ETHER, currency="ETH")
    else:
        world.pay_by_contract(mine, ETHER)
    world.mine()
    world.pass_time(4 * 3_600)
    world.mine(3)
    world.catch_up()
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER


def test_coin_in_time_is_credited_after_the_second_provider_was_silent_for_hours(start: Start) -> None:
    world = start(2)
    mine = world.coin_invoice()
    world.providers[1].failure = DOWN
    world.pay_by_contract(mine, ETHER)
    world.advance(3)
    for _ in range(4):
        settle(world, rounds=1)
        world.pass_time(3_600)
        world.advance(3)
    assert confirmed(world) == 0
    world.providers[1].failure = None
    for _ in range(4):
        world.advance(3)
        settle(world, rounds=2)
    assert confirmed(world) == balance(world, mine) == ETHER


def test_a_liar_that_splits_coin_into_many_transfers_makes_few_deposits(start: Start) -> None:
    world = start(3)
    mine = world.coin_invoice()
    txid = world.pay_by_contract(mine, ETHER)
    height = world.mine()
    invent_traces(world, mine, txid, 1_000, at=height, units=ETHER // 1_000)
    world.catch_up()
    world.probe()
    assert len(world.deposits()) == surplus.TRACED_MAX + 1
    assert sum(row[0] for row in world.deposits("amount_units")) == ETHER


def test_the_largest_transfers_of_a_trace_are_named(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surplus, "TRACED_MAX", 2)
    world = start(1)
    mine = world.coin_invoice(10 * ETHER)
    for units in (2, 4, 1, 3):
        world.pay_by_contract(mine, units * ETHER)
    world.advance()
    world.probe()
    shown = world.deposits("split_part(ordinal, ':', 1)", "amount_units")
    assert sorted(shown) == [("probe", 3 * ETHER), ("trace", 3 * ETHER), ("trace", 4 * ETHER)]


def test_many_deposits_of_one_address_delay_no_other(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witnesses, "ASKED_PER_STEP", 3)
    world = start(2)
    flooded, victim = world.coin_invoice(), world.coin_invoice()
    txid = world.pay_by_contract(flooded, ETHER)
    invent_traces(world, flooded, txid, 9, at=world.mine(), units=ETHER // 9)
    world.catch_up()
    world.probe()
    assert len(world.deposits()) > 9
    world.pay(victim, ETHER, currency="ETH")
    world.confirm_sent()
    execute("UPDATE deposit_quorums SET next_attempt_at = app_now() - interval '1 hour'")
    execute(
        "UPDATE deposit_quorums q SET next_attempt_at = app_now() FROM deposits d"
        " WHERE d.id = q.deposit_id AND d.owner_id = %s",
        (victim.id,),
    )
    world.witness()
    world.poll()
    assert world.status(victim) == "paid"


def test_one_provider_cannot_double_a_plain_payment(start: Start) -> None:
    world = start()
    mine = world.coin_invoice(2 * ETHER)
    world.pay(mine, ETHER, currency="ETH")
    height = world.mine()
    inflate(world, mine, lambda at: ETHER if at >= height else 0)
    mute(world)
    world.catch_up()
    world.probe()
    assert len(world.deposits()) == 2
    world.confirm()
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER


def forget_transaction(world: World, number: int, txid: str) -> None:
    """Let a provider show a transaction no longer, as one that prunes old ones."""

    def pruned(truth: object, params: list[Any]) -> object:
        return None if params[0] == txid else truth

    for method in ("eth_getTransactionReceipt", "eth_getTransactionByHash"):
        world.providers[number].lies[method] = pruned


def invent_coin(world: World, of: InvoiceRow) -> None:
    """Let the first provider add one ether to an address's balance from a new block on, and have it found."""
    newest = world.mine()
    inflate(world, of, lambda at: ETHER if at >= newest else 0)
    mute(world)
    count = len(world.deposits())
    for _ in range(2):
        world.catch_up()
        world.probe()
        if len(world.deposits()) > count:
            break
        world.mine()  # Another provider had its turn.


def test_coin_of_a_payment_that_a_node_has_forgotten_is_not_free(start: Start) -> None:
    world = start(3)
    mine = world.coin_invoice(2 * ETHER)
    txid = world.pay(mine, ETHER, currency="ETH")
    world.mine()
    world.confirm()
    settle(world)
    assert world.deposits("status") == [("confirmed",)]

    forget_transaction(world, 1, txid)
    invent_coin(world, mine)
    assert len(world.deposits()) == 2
    world.confirm()
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER


def test_coin_of_a_payment_that_was_recorded_from_the_balance_is_not_free(start: Start) -> None:
    """No provider shows that payment in the block from which its coin was recorded."""
    world = start(3)
    mine = world.coin_invoice(2 * ETHER)
    _, height = pay_unseen(world, mine)
    inflate(world, mine, lambda at: -ETHER if at == height else 0)
    world.catch_up()
    world.probe()
    world.advance(14)
    settle(world, rounds=1)
    world.rescan()
    assert confirmed(world) == ETHER

    world.providers[0].lies.clear()
    invent_coin(world, mine)
    world.confirm()
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER


def test_not_one_wei_can_be_invented_that_holds_up_plain_payments(start: Start) -> None:
    world = start(3)
    mine = world.coin_invoice()
    inflate(world, mine, lambda _at: 1)
    mute(world)
    world.advance()
    world.probe()
    assert world.deposits("amount_units") == [(1,)]
    world.confirm()
    settle(world)
    assert confirmed(world) == 0

    world.pay(mine, ETHER, currency="ETH")
    world.confirm_sent()
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER


def test_a_payment_after_hidden_coin_that_counts_asks_for_no_balance(start: Start) -> None:
    world = start(3)
    mine = world.coin_invoice(3 * ETHER)
    world.pay_by_contract(mine, ETHER)
    world.confirm_sent()
    settle(world)
    assert confirmed(world) == ETHER

    world.pay(mine, ETHER, currency="ETH")
    world.confirm_sent()
    for provider in world.providers:
        provider.lies["eth_getBalance"] = DOWN
    witness(world)
    world.poll()
    assert confirmed(world) == 2 * ETHER


def test_a_payment_recorded_before_hidden_coin_asks_for_no_balance(start: Start) -> None:
    """The total of the hidden coin has counted it."""
    world = start(3)
    mine = world.coin_invoice(3 * ETHER)
    world.pay(mine, ETHER, currency="ETH")
    world.advance()
    world.pay_by_contract(mine, ETHER)
    for provider in world.providers:
        provider.lies["eth_getTransactionReceipt"] = DOWN
    world.confirm_sent()
    settle(world)
    assert confirmed(world) == ETHER

    for provider in world.providers:
        provider.lies = {"eth_getBalance": DOWN}
    witness(world)
    world.poll()
    assert confirmed(world) == 2 * ETHER


def statuses(world: World) -> dict[str, str]:
    """Return the status of each deposit by the kind of its ordinal."""
    return {ordinal.split(":")[0]: status for ordinal, status in world.deposits("ordinal", "status")}


def test_invented_coin_masks_no_true_coin_for_ever(start: Start) -> None:
    world = start(3)
    mine = world.coin_invoice()
    invent_coin(world, mine)
    world.confirm()
    settle(world, rounds=1)
    assert world.deposits("status") == [("reversed",)]

    world.providers[0].lies.clear()
    world.pay_by_contract(mine, ETHER)
    world.confirm_sent()
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER
    assert world.status(mine) == "paid"


def test_coin_that_the_first_provider_hides_is_found_by_another(start: Start) -> None:
    world = start(3)
    mine = world.coin_invoice()
    world.providers[0].lies["eth_getBalance"] = "0x0"
    world.pay_by_contract(mine, ETHER)
    height = world.mine()
    for _ in range(10):
        settle(world, rounds=2)
        world.pass_time(1800)
    execute("UPDATE invoices SET expires_at = app_now() - interval '3 hours'")
    world.providers[0].lies.clear()
    for _ in range(5):
        world.advance(5)
        settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER
    assert world.deposits("block_height") == [(height,)]


def test_what_one_provider_alone_found_explained_is_searched_by_the_next(start: Start) -> None:
    world = start(3)
    mine = world.coin_invoice()
    world.providers[0].lies["eth_getBalance"] = "0x0"
    first = world.cursor()[0]
    world.probe()
    assert probes.explained_height("ethereum", mine.address.lower()) is None
    world.probe()
    world.advance()
    world.probe()
    world.probe()
    assert probes.explained_height("ethereum", mine.address.lower()) == first
    world.pay_by_contract(mine, ETHER)
    height = world.mine()
    world.advance(3)
    world.probe()
    world.advance()
    world.probe()
    assert world.deposits("block_height") == [(height,)]


def test_one_provider_explains_alone_if_there_is_no_other(start: Start) -> None:
    world = start(1)
    mine = world.coin_invoice()
    world.probe()
    assert probes.explained_height("ethereum", mine.address.lower()) == world.cursor()[0]


def test_a_probe_goes_on_while_the_other_provider_is_silent(start: Start) -> None:
    world = start(2)
    mine = world.coin_invoice()
    world.probe()
    world.providers[1].lies["eth_getBalance"] = DOWN
    world.advance()
    world.pay_by_contract(mine, ETHER)
    world.advance()
    world.probe()
    assert world.deposits("amount_units") == [(ETHER,)]


def invent_then_pay(world: World, *, later_s: int = 0) -> tuple[InvoiceRow, int]:
    """Have invented coin recorded, then pay as much by a contract, and have two providers find it explained later."""
    mine = world.coin_invoice()
    invent_coin(world, mine)
    assert len(world.deposits()) == 1
    # As deep as this the balance does not have the payment yet.
    execute("UPDATE deposits SET depth_min = 8")
    world.providers[0].lies.clear()
    world.advance(4)
    world.pay_by_contract(mine, ETHER)
    height = world.mine()
    world.pass_time(later_s)
    for _ in range(3):
        world.advance()
        world.probe()
    assert len(world.deposits()) == 1
    assert (probes.explained_height("ethereum", mine.address.lower()) or 0) > height
    return mine, height


def test_coin_that_a_denied_deposit_masked_is_found_in_its_own_block(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its invoice has ended long ago, and its balance counts as explained."""
    monkeypatch.setattr(balances, "RETURN_S", 0)
    world = start(3)
    mine, height = invent_then_pay(world)
    execute("UPDATE invoices SET expires_at = app_now() - interval '1 day'")
    settle(world)
    world.advance(8)
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER
    assert [row for row in world.deposits("status", "block_height") if row[0] != "reversed"] == [("confirmed", height)]


def test_coin_in_time_that_a_denied_deposit_masked_counts_as_in_time(start: Start) -> None:
    world = start(3)
    mine, _ = invent_then_pay(world, later_s=3_700)
    settle(world)
    world.advance(8)
    settle(world)
    assert world.status(mine) == "paid"


def test_a_probe_under_way_while_its_deposit_is_denied_explains_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = start(1)
    mine = world.coin_invoice()
    surplus = balances._Probe._surplus

    def denied_meanwhile(probe: balances._Probe, height: int, block_hash: str) -> int:
        units = surplus(probe, height, block_hash)
        execute("UPDATE deposits SET status = 'reversed'")
        return units

    passed = world.pay(mine, ETHER, currency="ETH")
    world.advance()
    assert world.deposits("txid") == [(passed,)]
    monkeypatch.setattr(balances._Probe, "_surplus", denied_meanwhile)
    world.probe()
    assert probes.explained_height("ethereum", mine.address.lower()) is None


def test_no_more_of_a_traced_transfer_counts_than_later_deposits_have_left(start: Start) -> None:
    """Another provider finds it in its own block, after the first one has dated a part to the next block."""
    world = start(3)
    mine = world.coin_invoice(2 * ETHER)
    world.pay_by_contract(mine, ETHER)
    height = world.mine()
    world.mine()
    inflate(world, mine, lambda at: (ETHER // 2 if at > height else 0) - ETHER)
    invent_traces(world, mine, "0x" + "ee" * 32, 1, at=height + 1, units=ETHER // 2)
    world.catch_up()
    world.probe()
    world.advance(2)
    witness(world)
    world.poll()
    assert confirmed(world) == ETHER // 2
    world.providers[0].lies.clear()
    settle(world, rounds=1)
    assert sorted(world.deposits("block_height", "amount_units", "round")) == [
        (height, ETHER // 2, 0), (height + 1, ETHER // 2, 0),
    ]  # fmt: skip
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER


def test_a_late_payment_that_its_total_denies_is_not_recorded_again(start: Start) -> None:
    """Hidden coin used a part of it; the rest is found by the balance, in the block of the payment."""
    world = start(3)
    mine = world.coin_invoice(2 * ETHER)
    txid, height = pay_unseen(world, mine)
    inflate(world, mine, lambda at: (ETHER // 2 if at > height else 0) - ETHER)
    invent_traces(world, mine, txid, 1, at=height + 1, units=ETHER // 2)
    world.catch_up()
    world.probe()
    world.advance(2)
    witness(world)
    world.poll()
    assert confirmed(world) == ETHER // 2
    world.providers[0].lies.clear()
    world.advance(8)
    world.rescan()
    settle(world, rounds=8)
    kept = [("native", "reversed", 0, height), ("probe", "confirmed", 0, height), ("trace", "confirmed", 0, height + 1)]
    shown = world.deposits("split_part(ordinal, ':', 1)", "status", "round", "block_height")
    assert sorted(shown) == kept
    assert confirmed(world) == balance(world, mine) == ETHER


@pytest.mark.parametrize("is_reorg", [True, False])
@pytest.mark.parametrize("part", [1, 2])
def test_shares_of_coin_that_returns_by_its_own_payment_are_paid_once(
    start: Start, *, is_reorg: bool, part: int
) -> None:
    """Its coin, or a part, was shared as hidden coin, so that the payment itself was denied."""
    world = start(3)
    before = world.cursor()[0]
    mine = world.coin_invoice(ETHER // part)
    share_with(world.shop, 50)
    world.providers[0].cut_transactions()
    (_, first), (txid, raw) = (world.signed(to, ETHER, currency="ETH") for to in (STRANGER, mine.address.lower()))
    for each in (first, raw):
        world.node.ask("eth_sendRawTransaction", each)
    height = world.mine()
    world.mine()
    inflate(world, mine, lambda at: (ETHER // part if at > height else 0) - ETHER)
    invent_traces(world, mine, "0x" + "ee" * 32, 1, at=height + 1, units=ETHER // part)
    world.catch_up()
    world.probe()
    world.advance(2)
    witness(world)
    world.poll()
    ((hidden, *_),) = shown = world.deposits("id", "status", "amount_units")
    assert shown == [(hidden, "credited", ETHER // part)]
    ((shared,),) = rows("SELECT units FROM split_shares")
    world.providers[0].lies.clear()
    world.advance(8)
    world.rescan()
    witness(world)
    assert statuses(world) == {"trace": "credited", "native": "reversed"}
    execute("UPDATE split_shares SET released_units = left_units, left_units = 0")

    if is_reorg:
        world.reorg(world.node.height() - height + 1, (first, 1), (raw, 2))
        world.mine(3)
    else:
        rewind(world, before)
    world.catch_up()
    world.confirm()
    settle(world)
    live = [row[:3] for row in world.deposits("id", "txid", "ordinal", "status") if row[3] in {"credited", "confirmed"}]
    assert live == [(hidden, txid, "native")]
    # The reversal's debt comes first, then shares, less what their recipient has.
    ((net,),) = rows("SELECT net_units FROM deposits WHERE status = 'credited'")
    assert rows("SELECT sum(units) FROM split_shares") == [(max(shared, (net - shared) // 2),)]
    assert confirmed(world) == balance(world, mine) == ETHER


def test_a_payment_that_two_providers_deny_is_not_recorded_again_in_that_block(start: Start) -> None:
    world = start(3)
    mine = world.coin_invoice()
    world.mine()
    txid = deny_payment(world, mine)
    height = world.node.height()
    world.confirm()
    settle(world)
    assert world.deposits("status", "round") == [("reversed", 0)]
    # Another provider has read the block first, so that the liar reads it again.
    execute("UPDATE chain_blocks SET read_by = 'another'")
    for provider in world.providers[1:]:
        provider.failure = DOWN
    process = context.context()
    again = rescan.reread(process, world.network, reader(world.network, process.settings), height)
    assert (again.block_hash is None, again.recorded) == (False, 0)
    assert world.deposits("txid", "status", "round") == [(txid, "reversed", 0)]


def test_a_denied_payment_is_judged_again_after_a_rewind(start: Start) -> None:
    world = start(3)
    before = world.cursor()[0]
    mine = world.coin_invoice()
    world.pay(mine, ETHER, currency="ETH")
    world.confirm_sent()
    for provider in world.providers[1:]:
        provider.lies["eth_getBlockByNumber"] = lambda truth, params: (
            truth | {"transactions": []} | ({"gasUsed": "0x0"} if params[1] else {}) if truth else truth
        )
        provider.lies["eth_getTransactionReceipt"] = None
    witness(world)
    assert world.deposits("status", "round") == [("reversed", 0)]
    for provider in world.providers:
        provider.lies.clear()
    rewind(world, before)
    world.catch_up()
    settle(world)
    assert world.deposits("status", "round") == [("credited", 1)]


def test_coin_is_not_dated_by_an_invented_deposit_of_its_sum(start: Start) -> None:
    """A late payment would count as one in time."""
    world = start(3)
    mine = world.coin_invoice()
    invent_coin(world, mine)
    world.confirm()
    settle(world, rounds=1)
    assert world.deposits("status") == [("reversed",)]
    world.providers[0].lies.clear()
    for provider in range(3):
        world.providers[provider].lies |= {
            "trace_block": Refusal(-32601, "no such method"), "debug_traceBlockByNumber": Refusal(-32601, "no"),
        }  # fmt: skip
    world.pass_time(600)
    world.pay_by_contract(mine, ETHER)
    height = world.mine()
    world.catch_up()
    settle(world)
    paid_at = int(world.node.ask("eth_getBlockByNumber", hex(height), False)["timestamp"], 16)
    moments = [f"extract(epoch FROM {moment})::integer" for moment in ("block_time", "seen_at")]
    assert world.deposits("block_height", *moments, "status <> 'reversed'") == [(height, paid_at, paid_at, True)]


def test_two_that_deny_coin_before_it_is_deep_take_nothing_back(start: Start) -> None:
    world = start(3)
    passed_on(world)
    world.catch_up()
    world.probe()
    for provider in world.providers[:2]:
        provider.lies["eth_getBalance"] = "0x0"
    witness(world)
    assert world.deposits("status") == [("pending",)]
    for provider in world.providers:
        provider.lies.clear()
    world.confirm()
    settle(world, rounds=1)
    assert world.deposits("status", "round") == [("credited", 0)]


def test_providers_that_cannot_answer_deny_nothing(start: Start) -> None:
    world = start(3)
    passed_on(world)
    world.catch_up()
    world.probe()
    world.confirm()
    world.providers[0].lies["eth_getBalance"] = "0x0"
    world.providers[1].lies["eth_getBalance"] = Refusal(-32000, "missing trie node")
    world.providers[2].lag(world.network.confirmations + 4)
    settle(world)
    assert world.deposits("status", "round") == [("pending", 0)]


def test_true_coin_that_two_providers_deny_comes_back(start: Start) -> None:
    world = start(3)
    passed_on(world)
    world.catch_up()
    world.probe()
    world.confirm()
    for provider in world.providers[:2]:
        provider.lies["eth_getBalance"] = "0x0"
    witness(world)
    assert world.deposits("status") == [("reversed",)]
    for provider in world.providers:
        provider.lies.clear()
    world.advance()
    settle(world)
    assert world.deposits("status", "round", "ordinal") == [("credited", 1, "trace:0")]


def invent_payment(world: World, of: InvoiceRow, units: int) -> str:
    """Let the first provider list a payment of coin in the newest block, which no other provider has."""
    height = world.node.height()
    block = world.node.ask("eth_getBlockByNumber", hex(height), True)
    invented = {
        "hash": "0x" + "ee" * 32, "from": STRANGER, "to": of.address.lower(), "value": hex(units), "input": "0x",
        "blockHash": block["hash"], "blockNumber": hex(height), "transactionIndex": hex(len(block["transactions"])),
        "nonce": "0x0", "gas": "0x5208", "gasPrice": "0x1", "type": "0x0", "v": "0x0", "r": "0x0", "s": "0x0",
    }  # fmt: skip

    def listed(truth: Any, params: list[Any]) -> Any:
        if truth is None or truth["hash"] != block["hash"]:
            return truth
        return truth | {"transactions": [*truth["transactions"], invented if params[1] else invented["hash"]]}

    def shown(truth: Any, params: list[Any]) -> Any:
        return invented if params[0] == invented["hash"] else truth

    outcome = {
        "transactionHash": invented["hash"], "blockHash": block["hash"], "blockNumber": hex(height), "status": "0x1",
        "logs": [],
    }  # fmt: skip
    world.providers[0].lies |= {
        "eth_getBlockByNumber": listed, "eth_getTransactionByHash": shown,
        "eth_getTransactionReceipt": lambda truth, params: outcome if params[0] == invented["hash"] else truth,
        "eth_getBlockReceipts": lambda truth, params: [*truth, outcome] if params[0] == hex(height) else truth,
    }  # fmt: skip
    return str(invented["hash"])


def test_an_invented_payment_holds_up_no_hidden_coin_for_ever(start: Start) -> None:
    """Until it is taken back, the hidden coin is neither agreed on nor denied."""
    world = start(3)
    mine = world.coin_invoice(2 * ETHER)
    world.pay_by_contract(mine, ETHER)
    height = world.mine()
    invent_payment(world, mine, ETHER)
    world.catch_up()
    inflate(world, mine, lambda at: ETHER if at >= height else 0)
    world.probe()
    assert statuses(world) == {"native": "pending", "trace": "pending"}
    world.confirm()
    execute("UPDATE deposit_quorums SET next_attempt_at = app_now() + interval '1 hour'")
    execute("UPDATE deposit_quorums SET next_attempt_at = app_now() WHERE reason = 'hidden'")
    world.witness()
    assert statuses(world) == {"native": "pending", "trace": "pending"}

    settle(world)
    assert statuses(world) | {"native": "reversed", "trace": "confirmed"} == statuses(world)
    assert confirmed(world) == balance(world, mine) == ETHER


def misstate_payment(world: World, of: InvoiceRow, units: int) -> str:
    """Let the first provider show another transaction of the newest block as a payment of coin; return its id."""
    (txid,) = world.node.ask("eth_getBlockByNumber", hex(world.node.height()), False)["transactions"][:1]

    def misstated(each: Any) -> Any:
        return each | {"to": of.address.lower(), "value": hex(units)} if each and each["hash"] == txid else each

    def full(truth: Any, params: list[Any]) -> Any:
        return truth | {"transactions": [*map(misstated, truth["transactions"])]} if truth and params[1] else truth

    world.providers[0].lies |= {
        "eth_getBlockByNumber": full, "eth_getTransactionByHash": lambda truth, _params: misstated(truth),
    }  # fmt: skip
    return str(txid)


@pytest.mark.parametrize("is_of_others", [True, False])
def test_a_payment_invented_under_a_listed_transaction_is_taken_back(start: Start, *, is_of_others: bool) -> None:
    """It is a stranger's, or the very one whose contract passes the coin on."""
    world = start(3)
    mine = world.coin_invoice(2 * ETHER)
    if is_of_others:
        world.decoy()
    world.pay_by_contract(mine, ETHER)
    height = world.mine()
    txid = misstate_payment(world, mine, ETHER)
    world.catch_up()
    assert world.deposits("txid", "ordinal") == [(txid, "native")]
    inflate(world, mine, lambda at: ETHER if at >= height else 0)
    world.probe()
    world.confirm()
    settle(world, rounds=4)
    assert statuses(world) | {"native": "reversed", "trace": "confirmed"} == statuses(world)
    assert confirmed(world) == balance(world, mine) == ETHER


def deny_payment(world: World, of: InvoiceRow) -> str:
    """Let the first provider invent a payment of coin in the newest block, and have it recorded."""
    txid = invent_payment(world, of, ETHER)
    world.catch_up()
    assert world.deposits("txid", "status") == [(txid, "pending")]
    return txid


@pytest.mark.parametrize("absence", ["lag", "down", "other block"])
def test_a_provider_that_lags_or_is_silent_denies_no_payment(start: Start, absence: str) -> None:
    world = start(3)
    mine = world.coin_invoice()
    world.mine()
    deny_payment(world, mine)
    height = world.node.height()
    world.confirm()
    if absence == "lag":
        world.providers[2].lag(world.network.confirmations + 4)
    elif absence == "down":
        world.providers[2].failure = DOWN
    else:
        world.providers[2].lies["eth_getBlockByNumber"] = lambda truth, params: (
            other_hash(truth, params) if truth and int(truth["number"], 16) == height else truth
        )
    settle(world)
    assert world.deposits("status") == [("pending",)]
    world.providers[2].failure = None
    world.providers[2].lies.clear()
    settle(world)
    assert world.deposits("status") == [("reversed",)]


def test_a_payment_that_providers_have_forgotten_is_not_taken_back(start: Start) -> None:
    """Their blocks still list it."""
    world = start(3)
    mine = world.coin_invoice()
    txid = world.pay(mine, ETHER, currency="ETH")
    world.confirm_sent()
    for number in (1, 2):
        forget_transaction(world, number, txid)
    settle(world)
    assert world.deposits("status") == [("pending",)]


def test_a_small_part_under_an_invented_trace_does_not_keep_the_whole_payment_out(start: Start) -> None:
    """The liar hides a payment and shows a part of its coin, which is credited; the rest of the coin is too."""
    world = start(3)
    mine = world.coin_invoice()
    txid, height = pay_unseen(world, mine)
    inflate(world, mine, lambda at: (1 if at > height else 0) - ETHER)
    invent_traces(world, mine, txid, 1, at=height + 1, units=1)
    world.catch_up()
    world.probe()
    world.advance(2)
    witness(world)
    world.poll()
    assert confirmed(world) == 1

    world.providers[0].lies.clear()
    world.advance(8)
    world.rescan()
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER


def test_a_payment_found_while_its_coin_is_pending_as_hidden_replaces_that(start: Start) -> None:
    world = start(3)
    mine = world.coin_invoice()
    txid, height = pay_unseen(world, mine)
    inflate(world, mine, lambda at: -ETHER if at == height else 0)
    mute(world)
    world.catch_up()
    world.probe()
    world.advance(8)
    world.rescan()
    world.providers[0].lies.clear()
    settle(world)
    assert statuses(world) == {"probe": "reversed", "native": "credited"}
    assert world.deposits("txid", "block_height")[1] == (txid, height)


def test_a_payment_whose_sum_was_corrected_needs_witnesses_too(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hidden coin may have used the rest of its coin meanwhile."""
    monkeypatch.setattr(rescan, "behind_blocks", lambda _network: 0)
    world = start(3, QUORUM_USD="1000")
    mine = world.coin_invoice()
    world.pay(mine, ETHER, currency="ETH")
    world.mine()
    world.providers[0].lies["eth_getBlockByNumber"] = lambda truth, params: (
        truth | {"transactions": [each | {"value": "0x1"} for each in truth["transactions"]]}
        if truth and params[1] else truth
    )  # fmt: skip
    world.catch_up()
    world.providers[0].lies.clear()
    world.rescan()
    world.witness()
    assert rows("SELECT d.round, d.amount_units FROM deposits d JOIN deposit_quorums q USING (round)") == [(1, ETHER)]


def test_a_slow_question_about_one_deposit_does_not_delay_the_others(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = start(3)
    slow = world.coin_invoice()
    world.pay_by_contract(slow, ETHER)
    _, other = world.mine(), world.coin_invoice()
    world.pay_by_contract(other, ETHER)
    world.confirm_sent()
    world.probe()
    compared = EvmReader.coverage

    def out_of_time(self: EvmReader, total: Total) -> Agreement:
        if total.address == slow.address.lower():
            raise BudgetSpentError("the step has taken long enough")
        return compared(self, total)

    monkeypatch.setattr(EvmReader, "coverage", out_of_time)
    witness(world)
    world.poll()
    assert world.deposits("owner_id", "status") == [(slow.id, "pending"), (other.id, "credited")]
    assert rows("SELECT attempts, problem <> '' FROM deposit_quorums WHERE agreed_at IS NULL") == [(1, True)]


@pytest.mark.parametrize("is_passed_on", [False, True])
def test_one_provider_cannot_multiply_a_payment_by_invented_traces(start: Start, *, is_passed_on: bool) -> None:
    world = start(3)
    mine = world.coin_invoice(5 * ETHER)
    txid = world.pay_by_contract(mine, ETHER) if is_passed_on else world.pay(mine, ETHER, currency="ETH")
    height = world.mine()
    inflate(world, mine, lambda at: 4 * ETHER if at >= height else 0)
    invent_traces(world, mine, txid, 5 if is_passed_on else 4, at=height)
    world.catch_up()
    world.probe()
    assert len(world.deposits()) == 5
    world.confirm()
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER


def test_a_payment_that_was_hidden_first_shares_the_balance_with_invented_traces(start: Start) -> None:
    """The liar hides a plain payment, shows its coin a block later under an invented trace, and that is credited."""
    world = start()
    mine = world.coin_invoice()
    txid, height = pay_unseen(world, mine)
    inflate(world, mine, lambda at: -ETHER if at == height else 0)
    invent_traces(world, mine, txid, 1, at=height + 1)
    world.catch_up()
    world.probe()
    world.advance(2)
    settle(world, rounds=1)
    assert world.deposits("ordinal", "block_height", "status") == [("trace:0", height + 1, "credited")]

    world.advance(8)
    world.rescan()
    assert world.deposits("ordinal", "status")[1:] == [("native", "pending")]
    settle(world)
    assert confirmed(world) == balance(world, mine) == ETHER

    assert world.deposits("ordinal", "status")[1:] == [("native", "reversed")]

    # More coin is a deposit of its own.
    world.pay_by_contract(mine, ETHER)
    world.advance()
    settle(world)
    assert confirmed(world) == balance(world, mine) == 2 * ETHER


def test_a_deposit_recorded_while_providers_answer_is_compared_too(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = start()
    passed_on(world)
    world.catch_up()
    world.probe()
    world.confirm()
    answers = iter([Counted(0, 0), Counted(ETHER, 0)])
    with monkeypatch.context() as patch:
        patch.setattr(probes, "counted", lambda *_, **__: next(answers))
        witness(world)
    assert world.deposits("status") == [("pending",)]
    witness(world)
    world.poll()
    assert world.deposits("status") == [("credited",)]


@pytest.mark.parametrize("moment", ["asked", "agreed"])
def test_no_deposit_is_agreed_on_while_own_spends_are_under_way(
    start: Start, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    world = start()
    passed_on(world)
    world.catch_up()
    world.probe()
    world.confirm()
    answers = iter([moment == "asked", True])
    with monkeypatch.context() as patch:
        patch.setattr(totals.addresses, "is_in_motion", lambda *_: next(answers))
        witness(world)
    assert rows("SELECT agreed_at FROM deposit_quorums") == [(None,)]
    witness(world)
    assert rows("SELECT agreed_at IS NULL FROM deposit_quorums") == [(False,)]


def test_coin_found_after_nodes_forgot_its_block_is_witnessed_at_a_later_one(start: Start) -> None:
    """All providers are honest; the probe of this address comes later than nodes keep states."""
    world = start()
    kept = 40

    def forgetful(truth: str, params: list[Any]) -> object:
        is_kept = height_of(world, params) > world.node.height() - kept
        return truth if is_kept else Refusal(-32000, "missing trie node")

    for provider in world.providers:
        provider.lies["eth_getBalance"] = forgetful
        for method in ("trace_block", "debug_traceBlockByNumber"):
            provider.lies[method] = Refusal(-32000, "required historical state unavailable")
    passed_on(world)
    world.advance(kept + 10)
    world.probe()
    (dated,) = world.deposits("block_height")
    world.confirm()
    deep = world.node.height() - world.network.confirmations + 1
    witness(world)
    world.poll()
    # A reorg that takes the witnessed coin takes its deposit too.
    assert world.deposits("status", "block_height") == [("credited", deep)]
    assert dated[0] < deep
    # The blocks between are not searched for the coin again.
    assert rows("SELECT height FROM balance_probes") == [(deep,)]


def test_coin_of_a_block_that_nodes_forgot_is_witnessed_again_after_a_rewind(start: Start) -> None:
    """One of two providers still traces the block; the balance after it is gone."""
    world = start()
    before = world.cursor()[0]
    _, height = passed_on(world)
    world.catch_up()
    world.probe()
    world.confirm()
    settle(world, rounds=1)
    assert world.deposits("status", "block_height") == [("credited", height)]
    world.advance(12)

    forget_old_states(world)
    world.providers[0].lies.clear()
    rewind(world, before)
    assert world.deposits("status") == [("reversed",)]
    world.catch_up()
    settle(world)
    assert world.deposits("status", "ordinal", "round") == [("credited", "trace:0", 1)]


def test_a_block_that_one_provider_shows_again_after_a_reorg_brings_no_deposit_back(start: Start) -> None:
    """The coin of a replaced block never returned, and the scan no longer keeps a block of that height."""
    world = start()
    _, height = passed_on(world)
    world.catch_up()
    world.probe()
    world.confirm()
    settle(world, rounds=1)
    assert world.deposits("status") == [("credited",)]
    (mine,) = (invoices.reread(row[0]) for row in world.deposits("owner_id"))
    orphan = world.node.ask("eth_getBlockByNumber", hex(height), False)
    world.reorg(world.node.height() - height + 1)
    world.mine(2)
    world.catch_up()
    assert world.deposits("status") == [("reversed",)]
    execute("DELETE FROM chain_blocks WHERE height <= %s", (height,))
    world.advance(300)

    newest = world.node.height()
    world.providers[0].lies["eth_getBlockByNumber"] = lambda truth, params: (
        orphan if params == [hex(height), False] else truth
    )
    inflate(world, mine, lambda at: ETHER if at >= newest else 0)
    world.advance()
    settle(world)
    assert balance(world, mine) == 0
    assert world.deposits("status", f"block_height > {height}") == [("pending", True)]
