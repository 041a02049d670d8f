"""A payout without effect costs the chain's fee, at most the charged one, and uses up no limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import msgspec
import pytest

from actors.signer import broadcast
from chains.spending import CoinsTooSmallError
from core.catalogue.families import evm_parameters
from core.ids import uuid7
from devstack.contracts.code import contracts
from devstack.evm.anvil import Anvil
from devstack.evm.tokens import install_code
from models.db.base import execute, rows, transaction
from models.ledger.ledger import (
    AVAILABLE,
    CUSTODY,
    DEBT,
    EQUITY,
    GATEWAY,
    NETWORK_FEES,
    Account,
    Transfer,
    balance,
    post,
)
from models.payout_links import claims as payout_link_claims
from models.payouts import conversion
from models.payouts import queue as payout_queue
from models.payouts import rows as payouts
from models.payouts import views as payout_views
from models.payouts.rows import PayoutRow
from models.rates import rates
from models.spends import limit_counters
from tests.actors.signer.test_broadcast import once
from tests.actors.signer.world import SpendWorld
from tests.actors.treasury.world import TreasuryWorld
from tests.models.builders import CATALOGUE, USDT, endpoint, merchant
from tests.models.invoices.builders import invoice
from tests.models.ledger.figures import net_of
from tests.models.payout_links.builders import claiming, funded
from tests.models.refunds.builders import send_back, suspense
from tests.peers.contract_wallet import install_wallet
from tests.peers.paper_chain import FIRST_PRICE, GAS

# The fee of a transaction on the paper chain, at twice its first price.
CHAIN_FEE = GAS * 2 * FIRST_PRICE
ETHER = 10**18


@pytest.fixture
def world(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpendWorld]:
    made = SpendWorld(database, monkeypatch, PAYOUT_FEE_CARRIED_USD="1")
    # A fee of 1 USDT pays for twice a transaction's gas.
    rates.store_network_fee("USDT", "ethereum", USDT, gas_units=2 * CHAIN_FEE)
    yield made
    made.close()


def reverted(world: SpendWorld, order: PayoutRow) -> PayoutRow:
    """Include a payout without effect, for good."""
    world.chain.reverting.add(order.address)
    world.step()
    world.advance()
    world.mature()
    ended = world.payout(order)
    assert (ended.status, world.held_units(order)) == ("failed", 0)
    return ended


def webhook_body(of: PayoutRow, event: str) -> dict[str, Any]:
    [(body,)] = rows("SELECT body FROM webhook_deliveries WHERE object_id = %s AND event = %s", (of.id, event))
    answer: dict[str, Any] = msgspec.json.decode(bytes(body) if not isinstance(body, str) else body)
    return answer


# Kept fees ----------------------------------------------------------------------------------------------------------


def test_a_reverted_payout_costs_the_chains_fee_and_shows_it(world: SpendWorld) -> None:
    shop = world.shop()
    endpoint(shop)
    order = world.order(shop)
    ended = reverted(world, order)

    assert world.available(order) == 1_000 * USDT - USDT // 2
    assert net_of(Account(GATEWAY, NETWORK_FEES, "USDT")) == USDT // 2
    assert webhook_body(order, "payout.failed")["commission"] == "0.5"
    assert "commission" not in webhook_body(order, "payout.sent")
    assert payout_views.payout(CATALOGUE, ended)["commission"] == "0.5"


@pytest.mark.parametrize(
    ("gas_units", "kept"),
    [
        (CHAIN_FEE // 7, USDT),
        (0, USDT),
        (3 * CHAIN_FEE, 333_334 * 10**12),
        (10**30, 10**12),
    ],
    ids=["dearer than charged", "a quote of nothing", "rounded up", "next to nothing"],
)
def test_the_kept_fee_is_converted_at_the_quote_and_at_most_the_charged_one(
    world: SpendWorld, gas_units: int, kept: int
) -> None:
    rates.store_network_fee("USDT", "ethereum", USDT, gas_units=gas_units)
    order = world.order()
    reverted(world, order)
    assert world.available(order) == 1_000 * USDT - kept


def test_the_quote_is_that_of_the_payouts_creation(world: SpendWorld) -> None:
    order = world.order()
    rates.store_network_fee("USDT", "ethereum", 100 * USDT, gas_units=1)
    reverted(world, order)
    assert world.available(order) == 1_000 * USDT - USDT // 2


def test_a_payout_of_the_gas_coin_pays_in_it(world: SpendWorld) -> None:
    step = 10 ** (CATALOGUE.scale("ETH") - CATALOGUE.assets["ETH"].precision)
    rates.store_network_fee("ETH", "ethereum", 2 * CHAIN_FEE, gas_units=2 * CHAIN_FEE)
    order = world.order(world.shop(currency="ETH"), currency="ETH", units=USDT, fee_units=10**6 * step)
    reverted(world, order)
    kept = -(-CHAIN_FEE // step) * step
    assert world.available(order) == 1_000 * USDT - kept


def test_an_unsigned_payout_costs_nothing(world: SpendWorld) -> None:
    shop = world.shop()
    endpoint(shop)
    order = world.order(shop)
    assert broadcast._fail(world.ctx, order.id, broadcast.REFUSED)
    assert world.available(order) == 1_000 * USDT
    assert webhook_body(order, "payout.failed")["commission"] == "0"


def test_a_reverted_cheque_costs_its_merchant_the_same(world: SpendWorld) -> None:
    shop = world.shop()
    link = claiming(funded(shop))
    with transaction():
        done = payout_link_claims.finish(CATALOGUE, link.id)
    assert done.payout_id is not None
    order = payouts.find(shop, done.payout_id)
    assert order is not None
    reverted(world, order)
    assert world.available(order) == 1_000 * USDT - USDT // 2


def test_a_converted_payout_returns_its_own_coin_less_the_same_fee(world: SpendWorld) -> None:
    shop = world.shop()
    rates.store_network_fee("ETH", "ethereum", 2 * CHAIN_FEE, gas_units=2 * CHAIN_FEE)
    world.fund(shop, 5 * USDT, "ETH")
    with transaction():
        post("test:equity", [Transfer(Account(shop, AVAILABLE, "ETH"), Account(GATEWAY, EQUITY, "ETH"), 5 * USDT)])
    new = PayoutRow(
        id=uuid7(), merchant_id=shop, order_id="changed", kind="payout", currency="ETH", network="ethereum",
        address="0x" + "ab" * 20, amount_units=USDT, fee_units=10**12, to_units=USDT, is_fee_on_top=True,
        status="approved", created_by="test", from_currency="USDT", from_units=3 * USDT, rate="0.5",
    )  # fmt: skip
    with transaction():
        conversion.book(new, from_currency="USDT", from_units=3 * USDT)
        order = payouts.insert(CATALOGUE, new)
    ended = reverted(world, order)
    assert 0 < ended.kept_units < 10**12
    assert world.available(order) == USDT + 10**12 - ended.kept_units


def refund(shop: UUID) -> PayoutRow:
    """Return a refund of 10 USDT from suspense, whose deposit is in the chain's first block."""
    made = invoice(shop)
    execute(
        "INSERT INTO deposits (id, owner_kind, owner_id, merchant_id, network, txid, ordinal, address, currency,"
        " amount_units, block_height, block_hash, block_time, seen_at, status, stray_reason)"
        " VALUES (%s, 'invoice', %s, %s, 'ethereum', '0xin', '0', %s, 'USDT', %s, 100, '0x0-100', app_now(), app_now(),"
        " 'confirmed', 'dust')",
        (uuid7(), made.id, shop, made.address.lower(), 10 * USDT),
    )
    with transaction():
        post(
            "test:confirm",
            [Transfer(Account(GATEWAY, CUSTODY, "USDT", "ethereum"), Account(shop, "suspense", "USDT"), 10 * USDT)],
        )
    rates.store_network_fee("USDT", "ethereum", USDT // 10, gas_units=2 * CHAIN_FEE)
    return send_back(made, stray=True)


@pytest.mark.parametrize("available", [1, 0], ids=["from available", "as a debt"])
def test_a_reverted_refund_from_suspense_returns_its_deposits_whole_and_costs_its_merchant(
    world: SpendWorld, available: int
) -> None:
    shop = merchant(fee_ppm=0, fee_fixed_usd_cents=0)
    if available:
        world.fund(shop, USDT)
    order = refund(shop)
    # Only now may it be sent.
    world.mine(2 * world.network.maturity)
    reverted(world, order)
    kept = USDT // 20
    assert suspense(shop) == 10 * USDT
    assert net_of(Account(GATEWAY, NETWORK_FEES, "USDT")) == kept
    assert balance(Account(shop, AVAILABLE, "USDT")) == (USDT - kept if available else 0)
    assert -net_of(Account(shop, DEBT, "USDT")) == (0 if available else kept)


def test_a_deposit_moved_to_a_newer_block_after_the_quote_is_not_sent_back(world: SpendWorld) -> None:
    order = refund(merchant(fee_ppm=0, fee_fixed_usd_cents=0))
    world.mine(2 * world.network.maturity)
    newest = world.chain.blocks[-1].height
    once("spending.quoted", lambda: execute("UPDATE deposits SET block_height = %s", (newest,)))
    world.step()
    assert (world.payout(order).status, world.count("spends"), len(world.chain.quoted)) == ("approved", 0, 1)

    world.mine(2 * world.network.maturity)
    world.due_now()
    world.step()
    assert world.payout(order).status == "sent"


# Limits -------------------------------------------------------------------------------------------------------------


def limited(database: str, monkeypatch: pytest.MonkeyPatch, **env: str) -> SpendWorld:
    limits = {"SIGNER_PAYOUT_MAX_USD": "10", "SIGNER_HOURLY_USD": "40", "SIGNER_DAILY_USD": "60"}
    return SpendWorld(database, monkeypatch, **limits | env)


def test_one_merchant_cannot_use_up_the_limits_of_others(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = limited(database, monkeypatch, SIGNER_MERCHANT_PERCENT="50")
    greedy, other = world.shop(), world.shop()
    crowd = [world.order(greedy) for _ in range(4)]
    world.step()
    assert sorted(world.payout(order).status for order in crowd) == ["approved"] * 2 + ["sent"] * 2
    assert set(world.reasons()) == {"", "the signer's limit: above the merchant's share of SIGNER_HOURLY_USD"}
    lone = world.order(other)
    world.step()
    assert world.payout(lone).status == "sent"

    # The merchant's part of the day: 30 of 60.
    for _ in range(3):
        world.pass_time(3_600)
        world.due_now()
        world.step()
    assert sorted(world.payout(order).status for order in crowd) == ["approved"] + ["sent"] * 3
    assert "the signer's limit: above the merchant's share of SIGNER_DAILY_USD" in world.reasons()
    world.close()


def test_a_merchants_part_is_at_least_the_limit_of_one_payout(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = limited(database, monkeypatch, SIGNER_MERCHANT_PERCENT="1")
    order = world.order()
    world.step()
    assert world.payout(order).status == "sent"
    world.close()


def test_a_failed_payout_returns_its_part_of_the_limits_once(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = limited(database, monkeypatch, SIGNER_MERCHANT_PERCENT="25")
    shop = world.shop()
    failing, later = world.order(shop), world.order(shop)
    world.chain.reverting.add(failing.address)
    world.step()
    assert (world.payout(failing).status, world.payout(later).status) == ("sent", "approved")
    assert (limit_counters.spent().hour, limit_counters.spent_by(shop).hour) == (1000, 1000)
    spend_id = world.spend(failing).id
    world.advance()
    world.mature()
    assert world.payout(failing).status == "failed"
    assert (limit_counters.spent().hour, limit_counters.spent_by(shop).hour) == (0, 0)

    limit_counters.give_back(spend_id)
    world.due_now()
    world.step()
    assert world.payout(later).status == "sent"
    limit_counters.give_back(spend_id)
    assert (limit_counters.spent().hour, limit_counters.spent_by(shop).day) == (1000, 1000)
    world.close()


def test_the_part_returns_to_the_hour_in_which_it_was_counted(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = limited(database, monkeypatch)
    order = world.order()
    world.chain.reverting.add(order.address)
    world.step()
    world.pass_time(7_200)
    other = world.order()
    world.step()
    assert (limit_counters.spent().hour, limit_counters.spent().day) == (1000, 2000)
    world.advance()
    world.mature()
    assert (world.payout(order).status, world.payout(other).status) == ("failed", "confirmed")
    assert (limit_counters.spent().hour, limit_counters.spent().day) == (1000, 1000)
    world.close()


def test_a_lost_slot_returns_its_part_and_the_next_signature_counts_again(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = limited(database, monkeypatch)
    order = world.order()
    world.step()
    world.chain.forget()
    world.chain.stranger(world.hot, slot=0)
    world.mine(world.network.maturity + 1)
    world.step(3)
    assert (world.payout(order).status, limit_counters.spent().day) == ("approved", 0)
    world.write_off()
    world.due_now()
    world.step()
    assert world.count("spend_outputs WHERE payout_id IS NOT NULL") == 2
    assert (world.payout(order).status, limit_counters.spent().day) == ("sent", 1000)
    world.close()


# On a real node -----------------------------------------------------------------------------------------------------

BURNER = "0x" + "b0" * 20


@pytest.fixture
def chain(database: str, anvil: Callable[..., Anvil]) -> Iterator[TreasuryWorld]:
    yield from TreasuryWorld(database, anvil, COLD_ADDRESSES="").opened(gas_wei=20 * ETHER)


def order(chain: TreasuryWorld, units: int = ETHER, *, to: str = BURNER) -> PayoutRow:
    """Order coin to a contract, with the fee of the present quote."""
    [(fee_units,)] = rows("SELECT units FROM network_fees WHERE (currency, network) = ('ETH', 'ethereum')")
    step = 10 ** (CATALOGUE.scale("ETH") - CATALOGUE.assets["ETH"].precision)
    fee_units = -(-int(fee_units) // step) * step
    custody = Account(GATEWAY, EQUITY, "ETH")
    with transaction():
        post(
            f"test:{uuid7()}",
            [Transfer(custody, Account(chain.shop, AVAILABLE, "ETH"), units + fee_units)],
        )
        return payouts.insert(
            CATALOGUE,
            PayoutRow(
                id=uuid7(), merchant_id=chain.shop, order_id=str(uuid7()), kind="payout", currency="ETH",
                network="ethereum", address=to, amount_units=units, fee_units=fee_units, to_units=units,
                is_fee_on_top=True, status="approved", created_by="test",
            ),
        )  # fmt: skip


def burns_since(chain: TreasuryWorld, height: int) -> None:
    install_code(chain.node.rpc, BURNER, "burner")
    slot = contracts()["burner"]["slots"]["since"]
    chain.node.ask("anvil_setStorageAt", BURNER, hex(slot), f"0x{height:064x}")


def works_and_burns_since(chain: TreasuryWorld, height: int) -> None:
    """The same, by a recipient that knows our margin: a trial uses nearly all of the charged gas."""
    work = "".join(f"60{slot:02x}5450" for slot in range(4))
    # NUMBER < height: do the work; else loop for ever.
    chain.node.ask("anvil_setCode", BURNER, f"0x4363{height:08x}11600e575b600a565b{work}00")


@pytest.mark.parametrize("install", [burns_since, works_and_burns_since])
def test_a_recipient_that_burns_gas_when_mined_pays_for_it(
    chain: TreasuryWorld, install: Callable[[TreasuryWorld, int], None]
) -> None:
    """It passes the trial at the offered price and burns all its gas in the block."""
    chain.bury()
    endpoint(chain.shop)
    install(chain, chain.node.height() + 3)
    paid = order(chain)
    before = balance(Account(chain.shop, AVAILABLE, "ETH"))
    chain.watch()
    assert payouts.find(chain.shop, paid.id).status == "sent"  # type: ignore[union-attr]
    [(txid, gas_limit)] = rows("SELECT txid, (terms ->> 'gas_limit')::bigint FROM spend_attempts a"
                               " JOIN spends s ON s.id = a.spend_id WHERE s.purpose = 'payout'")  # fmt: skip
    assert gas_limit <= evm_parameters(CATALOGUE.networks["ethereum"]).transfer_gas["ETH"]
    assert limit_counters.spent_by(chain.shop).hour > 0
    chain.node.ask("anvil_dropTransaction", txid)
    chain.mine(4)
    [(raw,)] = rows("SELECT raw FROM spend_attempts a JOIN spends s ON s.id = a.spend_id WHERE s.purpose = 'payout'")
    chain.node.ask("eth_sendRawTransaction", "0x" + bytes(raw).hex())
    chain.follow()
    receipt = chain.node.receipt(txid)
    assert (receipt["status"], int(receipt["gasUsed"], 16)) == ("0x0", gas_limit)
    chain.bury()

    ended = payouts.find(chain.shop, paid.id)
    assert ended is not None
    assert ended.status == "failed"
    took = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    step = 10 ** (CATALOGUE.scale("ETH") - CATALOGUE.assets["ETH"].precision)
    assert ended.kept_units == min(ended.fee_units, -(-took // step) * step) > 0
    assert took <= ended.kept_units, "at a constant price the gateway adds nothing"
    assert balance(Account(chain.shop, AVAILABLE, "ETH")) == before + ended.held_units - ended.kept_units
    assert net_of(Account(GATEWAY, NETWORK_FEES, "ETH")) == ended.kept_units
    assert limit_counters.spent_by(chain.shop).day == 0
    assert int(chain.node.ask("eth_getBalance", BURNER, "latest"), 16) == 0


def test_a_recipient_that_accepts_coin_only_without_a_price_is_detected_in_the_trial(chain: TreasuryWorld) -> None:
    burns_since(chain, 0)
    paid = order(chain)
    chain.watch()
    waits = rows("SELECT status, refused_since IS NOT NULL FROM payouts WHERE id = %s", (paid.id,))
    assert waits == [("approved", True)]
    assert [purpose for purpose, _ in chain.spends()].count("payout") == 0


def test_a_contract_wallet_is_paid_and_charged_for_its_gas(chain: TreasuryWorld) -> None:
    install_wallet(chain.node, BURNER)
    paid = order(chain)
    chain.watch()
    chain.follow()
    chain.bury()
    ended = payouts.find(chain.shop, paid.id)
    assert ended is not None
    assert ended.status == "confirmed"
    assert chain.coin(BURNER) == ETHER
    [(took,)] = rows("SELECT chain_fee_units FROM spends WHERE purpose = 'payout'")
    assert 0 < took <= ended.fee_units


# Fees that rise after an order was charged -----------------------------------------------------------------------


def cheque(world: SpendWorld, shop: UUID) -> PayoutRow:
    """Return the payout of a cheque that was charged 1 USDT at its creation, long ago."""
    return world.order(shop, kind="cheque")


def test_a_cheque_whose_fee_rose_far_above_its_charge_waits_until_the_fee_falls(world: SpendWorld) -> None:
    old = cheque(world, world.shop())
    rates.store_network_fee("USDT", "ethereum", 2 * USDT + 1, gas_units=CHAIN_FEE)
    world.step()
    waiting = world.payout(old)

    assert (waiting.status, waiting.wait_reason, waiting.waiting_for) == ("approved", payout_queue.FEE_RISEN, "fee")
    assert rows("SELECT 1 FROM spends") == []
    # It keeps no sweep waiting, and its merchant may cancel it: nothing is signed.
    execute("UPDATE payouts SET due_at = app_now()")
    assert not payout_queue.is_any_due(world.network)
    rates.store_network_fee("USDT", "ethereum", 2 * USDT, gas_units=CHAIN_FEE)
    world.step()
    assert (world.payout(old).status, world.payout(old).wait_reason) == ("sent", "")
    assert rows("SELECT carried_cents FROM signer.counted") == [(100,)]


def test_a_payout_waits_for_its_fee_only_once_it_is_older_than_its_quote(world: SpendWorld) -> None:
    shop = world.shop()
    old = world.order(shop)
    world.pass_time(rates.STALE_AFTER_S + 1)
    young = world.order(shop)
    rates.store_network_fee("USDT", "ethereum", 76 * USDT, gas_units=CHAIN_FEE)
    world.step()

    assert world.payout(old).wait_reason == payout_queue.FEE_RISEN
    assert world.payout(young).status == "sent"
    # The last quote counts even if it is stale: an outage of rates must not open a gap.
    world.pass_time(rates.STALE_AFTER_S + 1)
    world.step()
    assert world.payout(old).wait_reason == payout_queue.FEE_RISEN


def test_the_gateways_additions_to_fees_are_bounded_for_a_merchant_and_a_day(world: SpendWorld) -> None:
    shop = world.shop()
    first, second, other = cheque(world, shop), cheque(world, shop), cheque(world, world.shop())
    rates.store_network_fee("USDT", "ethereum", 2 * USDT, gas_units=CHAIN_FEE)
    world.step()

    assert [world.payout(each).status for each in (first, second, other)] == ["sent", "approved", "sent"]
    assert world.payout(second).wait_reason == payout_queue.FEE_RISEN
    world.pass_time(25 * 3_600)
    world.step()
    assert world.payout(second).status == "sent"


def test_a_wallet_with_only_small_coins_is_not_reported_as_short(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draft(*_args: object, **_named: object) -> None:
        raise CoinsTooSmallError("200 inputs cost more than is paid")

    monkeypatch.setattr(world.chain, "draft", draft)
    order = world.order(world.shop())
    world.step()

    payout = world.payout(order)
    assert (payout.wait_reason, payout.waiting_for) == (payout_queue.COINS_TOO_SMALL, "fee")
    execute("UPDATE payouts SET due_at = app_now()")
    assert not payout_queue.is_any_due(world.network)
