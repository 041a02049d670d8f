"""Credits and announces each deposit of a wallet once, in any coin, amount and network; a blocked one holds it."""

from __future__ import annotations

import json
from typing import Final
from uuid import UUID

import pytest

from core.rates.pricing import PPM
from models.db.base import column, execute, transaction, value
from models.deposits import crediting
from models.deposits import rows as deposits
from models.invoices import settlement
from models.ledger.ledger import AVAILABLE, FEES, GATEWAY, MATURING, ROUNDING, SUSPENSE, Account, Transfer
from models.outcomes import reversals
from models.wallets import deposits as wallet_deposits
from models.wallets import rows as wallets
from models.wallets import settlement as wallet_settlement
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound, merchant
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import PRICE, invoice, paid
from tests.models.ledger.figures import balances_of, net_of, owes
from tests.models.ledger.test_ledger import book
from tests.models.wallets.builders import (
    bodies,
    deposit_of,
    queues,
    received,
    reread,
    set_blocked,
    settled,
    statuses,
    wallet,
)

pytestmark = pytest.mark.usefixtures("sound", "shop_endpoint")

# 10 USDT less 1.5 %, and no fixed fee.
GROSS: Final = 10 * USDT
NET: Final = GROSS * 985 // 1000
DAI: Final = 10**18


def suspense(shop: UUID, currency: str = "USDT") -> int:
    return net_of(Account(shop, SUSPENSE, currency))


def webhook_count(shop: UUID) -> int:
    return value("SELECT count(*) FROM webhook_deliveries WHERE merchant_id = %s", (shop,))


def unblock(of: wallets.WalletRow) -> bool:
    set_blocked(of, is_blocked=False)
    return queues(lambda: wallet_settlement.credit_held(CATALOGUE, of.id))


# Credit -----------------------------------------------------------------------------------------------------


def test_a_deposit_is_credited_less_the_percent_fee_alone(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    chain.pay(mine, GROSS)
    assert not settled(mine)
    assert (statuses(mine), balances_of(shop)) == (["pending"], {})

    chain.confirm()

    assert settled(mine)
    assert balances_of(shop) == {MATURING: NET}
    assert net_of(Account(GATEWAY, FEES, "USDT")) == GROSS - NET
    assert (statuses(mine), suspense(shop)) == (["credited"], 0)
    assert deposit_of(mine).fee_fixed_units == 0


def test_a_credit_becomes_available_at_the_maturity_depth(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    received(chain, mine, GROSS)
    chain.mature()

    crediting.release_matured(CATALOGUE.networks["ethereum"], limit=10)

    assert balances_of(shop) == {AVAILABLE: NET}


def test_every_deposit_is_announced_once_with_its_coin_and_sum(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop, order_id="customer-1")
    chain.pay(mine, GROSS, txid="0x1")
    chain.pay_and_confirm(mine, 2 * DAI, currency="DAI", txid="0x2")

    settled(mine)
    settled(mine)

    first, second = (json.loads(body) for body in bodies(mine))
    assert first == {
        "type": "wallet",
        "uuid": str(mine.id),
        "order_id": "customer-1",
        "address": first["address"],
        "network": "ethereum",
        "currency": "USDT",
        "payment_amount": "10",
        "payer_currency": "USDT",
        "txid": "0x1",
        "status": "paid",
        "is_final": True,
    }
    assert first["address"].lower() == mine.address != first["address"]
    assert second == first | {"payment_amount": "2", "payer_currency": "DAI", "txid": "0x2"}
    assert set(column("SELECT event FROM webhook_deliveries")) == {"wallet.paid"}


def test_any_coin_of_the_network_is_credited_in_that_coin(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    coins = [pair.currency for pair in CATALOGUE.pairs_on("ethereum")]
    assert len(coins) > 3
    for coin in coins:
        chain.pay(mine, 10 ** CATALOGUE.scale(coin), currency=coin)
    chain.confirm()

    settled(mine)

    for coin in coins:
        assert balances_of(shop, coin) == {MATURING: 985 * 10 ** (CATALOGUE.scale(coin) - 3)}, coin


def test_the_smallest_amount_is_credited(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    token_unit = USDT // 10**6
    chain.pay(mine, token_unit)
    chain.pay_and_confirm(mine, 3 * token_unit)

    settled(mine)

    assert statuses(mine) == ["credited", "credited"]
    assert json.loads(bodies(mine)[0])["payment_amount"] == "0.000001"
    # A unit less its fee is no whole unit, and could never be paid out.
    assert balances_of(shop) == {MATURING: 2 * token_unit}
    assert net_of(Account(GATEWAY, ROUNDING, "USDT")) > 0


def test_a_wallets_own_fee_is_charged(shop: UUID, chain: Chain) -> None:
    free, dear = wallet(shop, fee_ppm=0), wallet(shop, order_id="dear", fee_ppm=PPM)
    execute("UPDATE merchants SET own_fee_ppm = 500000")
    chain.pay(free, GROSS)
    chain.pay_and_confirm(dear, GROSS)

    settled(free)
    settled(dear)

    assert balances_of(shop) == {MATURING: GROSS}


def test_a_debt_is_repaid_first(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    debt, owed = Account(shop, "debt", "USDT"), 3 * USDT
    book(Transfer(debt, Account(GATEWAY, "conversion", "USDT"), owed))
    chain.pay_and_confirm(mine, GROSS)

    settled(mine)

    assert (owes(shop), balances_of(shop)) == (0, {MATURING: NET - owed})


def test_a_deposit_is_credited_without_an_endpoint(chain: Chain) -> None:
    quiet = merchant()
    mine = wallet(quiet)
    chain.pay_and_confirm(mine, GROSS)

    assert not settled(mine)
    assert balances_of(quiet) == {MATURING: NET}


def test_concurrent_settlements_credit_once(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    for _ in range(3):
        chain.pay(mine, GROSS)
    chain.confirm()

    outcomes = at_once(8, lambda _: wallet_settlement.settle(CATALOGUE, mine.id))

    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert (balances_of(shop), len(bodies(mine))) == ({MATURING: 3 * NET}, 3)


def test_wallets_of_one_merchant_in_many_coins_settle_without_deadlocks(shop: UUID, chain: Chain) -> None:
    mine, other = wallet(shop), wallet(shop, order_id="other")
    for owner, coins in ((mine, ("USDT", "DAI", "ETH")), (other, ("ETH", "DAI", "USDT"))):
        for coin in coins:
            chain.pay(owner, 10 ** CATALOGUE.scale(coin), currency=coin)
    chain.confirm()

    outcomes = at_once(6, lambda n: wallet_settlement.settle(CATALOGUE, (mine, other)[n % 2].id))

    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert len(bodies(mine)) == len(bodies(other)) == 3


def test_a_step_is_bounded_and_the_next_continues(shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wallet_settlement, "DEPOSITS_PER_STEP", 2)
    mine = wallet(shop)
    for _ in range(5):
        chain.pay(mine, GROSS)
    chain.confirm()

    for done in (2, 4, 5):
        settled(mine)
        assert statuses(mine).count("credited") == done


def test_a_step_reads_its_deposits_again_under_the_lock(shop: UUID, chain: Chain) -> None:
    """A reorg may have come between the list of due deposits and the step's locks."""
    mine, other = wallet(shop), wallet(shop, order_id="other")
    chain.pay(mine, GROSS)
    deposit = deposit_of(mine)

    wallet_settlement._advance(CATALOGUE, mine.id, deposit.id)
    assert statuses(mine) == ["pending"]
    chain.confirm()
    wallet_settlement._advance(CATALOGUE, other.id, deposit.id)
    assert statuses(mine) == ["pending"]


def test_a_deposit_waiting_for_a_witness_is_not_credited(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    chain.pay(mine, GROSS)
    execute(
        "INSERT INTO deposit_quorums (deposit_id, round, network, reason) VALUES (%s, 0, 'ethereum', 'amount')",
        (deposit_of(mine).id,),
    )
    chain.confirm()
    assert not settled(mine)
    wallet_settlement._advance(CATALOGUE, mine.id, deposit_of(mine).id)
    assert (deposit_of(mine).shown_status, balances_of(shop)) == ("awaiting_quorum", {})

    execute("UPDATE deposit_quorums SET agreed_at = app_now()")

    assert settled(mine)
    assert balances_of(shop) == {MATURING: NET}


def test_an_unknown_wallet_is_ignored(shop: UUID, chain: Chain) -> None:
    sale = invoice(shop)
    chain.pay_and_confirm(sale, PRICE)

    assert not queues(lambda: wallet_settlement.settle(CATALOGUE, sale.id))
    assert not queues(lambda: wallet_settlement.credit_held(CATALOGUE, sale.id))
    assert suspense(shop) == 0


# Other networks ---------------------------------------------------------------------------------------------


def test_a_deposit_over_another_network_is_credited_and_announced_with_it(shop: UUID, chain: Chain) -> None:
    mine, bsc = wallet(shop), Chain("bsc")
    bsc.pay_and_confirm(mine, GROSS, txid="0xb5c")
    del chain

    assert settled(mine)

    assert (statuses(mine), balances_of(shop), suspense(shop)) == (["credited"], {MATURING: NET}, 0)
    (body,) = map(json.loads, bodies(mine))
    assert (body["network"], body["currency"], body["payment_amount"], body["txid"]) == ("bsc", "USDT", "10", "0xb5c")
    assert body["address"].lower() == mine.address
    bsc.mature()
    crediting.release_matured(CATALOGUE.networks["bsc"], limit=10)
    assert balances_of(shop) == {AVAILABLE: NET}


def test_a_blocked_wallet_holds_deposits_of_other_networks_too(shop: UUID, chain: Chain) -> None:
    mine, bsc = set_blocked(wallet(shop), is_blocked=True), Chain("bsc")
    bsc.pay_and_confirm(mine, GROSS)
    del chain
    assert not settled(mine)
    assert (statuses(mine), balances_of(shop), suspense(shop)) == (["confirmed"], {}, GROSS)

    assert unblock(mine)

    assert (statuses(mine), balances_of(shop)) == (["credited"], {MATURING: NET})


def test_a_deposit_waits_for_its_own_network(shop: UUID, chain: Chain) -> None:
    mine, bsc = wallet(shop), Chain("bsc")
    bsc.pay(mine, GROSS)
    chain.mine(100)

    settled(mine)

    assert statuses(mine) == ["pending"]


# Blocks -----------------------------------------------------------------------------------------------------


def test_a_blocked_wallet_holds_confirmed_deposits(shop: UUID, chain: Chain) -> None:
    mine = set_blocked(wallet(shop), is_blocked=True)
    chain.pay_and_confirm(mine, GROSS)

    assert not settled(mine)

    assert (statuses(mine), balances_of(shop), suspense(shop), webhook_count(shop)) == (["confirmed"], {}, GROSS, 0)


def test_blocking_holds_deposits_that_are_being_confirmed(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    chain.pay(mine, GROSS)
    set_blocked(mine, is_blocked=True)
    chain.confirm()

    assert not settled(mine)
    assert balances_of(shop) == {}


def test_a_settlement_waits_for_a_block_under_way(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    chain.pay_and_confirm(mine, GROSS)

    def act(number: int) -> None:
        if number == 1:
            execute("SELECT pg_sleep(0.3)")
            wallet_settlement.settle(CATALOGUE, mine.id)
            return
        with transaction():
            wallets.set_blocked(mine, is_blocked=True)
            execute("SELECT pg_sleep(0.8)")

    assert at_once(2, act) == [None, None]
    assert (statuses(mine), balances_of(shop)) == (["confirmed"], {})


def test_blocking_reverses_no_credit(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    received(chain, mine, GROSS)

    set_blocked(mine, is_blocked=True)
    settled(mine)

    assert balances_of(shop) == {MATURING: NET}


def test_unblocking_credits_and_announces_each_held_deposit(shop: UUID, chain: Chain) -> None:
    mine = set_blocked(wallet(shop), is_blocked=True)
    chain.pay(mine, GROSS)
    received(chain, mine, DAI, currency="DAI")

    assert unblock(mine)
    assert not queues(lambda: wallet_settlement.credit_held(CATALOGUE, mine.id))

    assert (balances_of(shop), suspense(shop), suspense(shop, "DAI")) == ({MATURING: NET}, 0, 0)
    assert statuses(mine) == ["credited", "credited"]
    assert [json.loads(body)["payer_currency"] for body in bodies(mine)] == ["USDT", "DAI"]
    assert not reread(mine.id).is_credit_due


def test_unblocking_does_not_credit_a_deposit_without_confirmations(shop: UUID, chain: Chain) -> None:
    mine = set_blocked(wallet(shop), is_blocked=True)
    chain.pay(mine, GROSS)

    assert not unblock(mine)

    assert (statuses(mine), balances_of(shop)) == (["pending"], {})


def held_back(shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch, *, deposits: int) -> wallets.WalletRow:
    """Return a blocked wallet with confirmed deposits, of which two are credited a step."""
    mine = set_blocked(wallet(shop), is_blocked=True)
    for _ in range(deposits):
        chain.pay(mine, GROSS)
    chain.confirm()
    settled(mine)
    monkeypatch.setattr(wallet_settlement, "DEPOSITS_PER_STEP", 2)
    return mine


def test_many_held_deposits_are_credited_step_by_step(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = held_back(shop, chain, monkeypatch, deposits=5)

    set_blocked(mine, is_blocked=False)
    seen = []
    while wallets.credit_due(10):
        assert queues(lambda: wallet_settlement.credit_held(CATALOGUE, mine.id))
        assert_sound()
        seen.append(statuses(mine).count("credited"))

    assert seen == [2, 4, 5]


def test_blocking_again_keeps_the_uncredited_rest_held(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = held_back(shop, chain, monkeypatch, deposits=3)
    unblock(mine)

    set_blocked(mine, is_blocked=True)
    assert not queues(lambda: wallet_settlement.credit_held(CATALOGUE, mine.id))

    assert statuses(mine) == ["credited", "credited", "confirmed"]
    assert balances_of(shop) == {MATURING: 2 * NET}


def test_concurrent_unblocking_credits_once(shop: UUID, chain: Chain) -> None:
    mine = set_blocked(wallet(shop), is_blocked=True)
    for _ in range(3):
        chain.pay(mine, GROSS)
    chain.confirm()
    settled(mine)

    outcomes = at_once(6, lambda _: unblock(mine))

    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert (balances_of(shop), len(bodies(mine))) == ({MATURING: 3 * NET}, 3)


def test_concurrent_blocks_and_settlements_leave_every_deposit_held_or_credited(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    for _ in range(6):
        chain.pay(mine, GROSS)
    chain.confirm()

    def act(number: int) -> object:
        if number % 3 == 0:
            return set_blocked(mine, is_blocked=True)
        return unblock(mine) if number % 3 == 1 else wallet_settlement.settle(CATALOGUE, mine.id)

    outcomes = at_once(9, act)
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    unblock(mine)

    assert statuses(mine) == ["credited"] * 6
    assert (balances_of(shop), len(bodies(mine))) == ({MATURING: 6 * NET}, 6)


# Reorgs -----------------------------------------------------------------------------------------------------


def test_a_reorg_reverses_a_credit(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    received(chain, mine, GROSS)

    chain.reorg(chain.network.confirmations)

    assert (statuses(mine), balances_of(shop), suspense(shop)) == (["reversed"], {}, 0)
    assert net_of(Account(GATEWAY, FEES, "USDT")) == 0
    assert len(bodies(mine)) == 1


def test_a_reorg_of_spent_money_makes_a_debt(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    received(chain, mine, GROSS)
    chain.mature()
    crediting.release_matured(CATALOGUE.networks["ethereum"], limit=10)
    book(Transfer(Account(shop, AVAILABLE, "USDT"), Account(GATEWAY, "conversion", "USDT"), NET))

    chain.reorg(chain.network.confirmations + chain.network.maturity - 1)

    assert (owes(shop), statuses(mine)) == (NET, ["reversed"])


def test_a_reorg_reverses_a_held_deposit(shop: UUID, chain: Chain) -> None:
    mine = set_blocked(wallet(shop), is_blocked=True)
    received(chain, mine, GROSS)

    chain.reorg(chain.network.confirmations)

    assert (statuses(mine), suspense(shop)) == (["reversed"], 0)
    assert not unblock(mine)
    assert (statuses(mine), balances_of(shop), webhook_count(shop)) == (["reversed"], {}, 0)


def test_a_reorg_of_another_network_reverses_its_deposits(shop: UUID, chain: Chain) -> None:
    mine, bsc = wallet(shop), Chain("bsc")
    received(chain, mine, GROSS)
    received(bsc, mine, GROSS)

    bsc.reorg(bsc.network.confirmations)

    assert (sorted(statuses(mine)), balances_of(shop)) == (["credited", "reversed"], {MATURING: NET})


def test_a_returning_deposit_is_credited_again_and_not_announced_again(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    first = received(chain, mine, GROSS)
    chain.reorg(chain.network.confirmations)

    chain.mine(1, first)
    chain.confirm()

    assert not settled(mine)
    assert (statuses(mine), balances_of(shop), len(bodies(mine))) == (["credited"], {MATURING: NET}, 1)
    assert deposit_of(mine).round == 1


def test_a_returning_transaction_with_another_sum_is_announced(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    first = received(chain, mine, GROSS)
    chain.reorg(chain.network.confirmations)

    chain.pay_and_confirm(mine, 2 * GROSS, txid=first.txid)

    assert settled(mine)
    assert [json.loads(body)["payment_amount"] for body in bodies(mine)] == ["10", "20"]
    assert balances_of(shop) == {MATURING: 2 * NET}


def test_a_returning_transaction_to_another_wallet_is_announced_there(shop: UUID, chain: Chain) -> None:
    mine, other = wallet(shop), wallet(shop, order_id="other")
    first = received(chain, mine, GROSS)
    chain.reorg(chain.network.confirmations)

    chain.pay_and_confirm(other, GROSS, txid=first.txid)

    assert settled(other)
    assert not settled(mine)
    assert (len(bodies(mine)), len(bodies(other)), statuses(mine)) == (1, 1, [])
    assert balances_of(shop) == {MATURING: NET}


def test_a_returning_transaction_to_an_invoice_belongs_to_the_invoice(shop: UUID, chain: Chain) -> None:
    mine, sale = wallet(shop), invoice(shop)
    first = received(chain, mine, PRICE)
    chain.reorg(chain.network.confirmations)

    chain.pay_and_confirm(sale, PRICE, txid=first.txid)
    wallet_settlement.settle(CATALOGUE, mine.id)
    settlement.settle(CATALOGUE, sale.id)

    assert statuses(mine) == []
    assert value("SELECT status FROM invoices") == "paid"


def test_a_reorg_left_half_done_is_finished_by_the_next_scan(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    for _ in range(2):
        chain.pay(mine, GROSS)
    chain.confirm()
    settled(mine)
    chain.fork(chain.network.confirmations + 1)
    orphans = deposits.orphans("ethereum", kind="wallet")
    assert len(orphans) == 2
    reversals.reverse_of_wallet(CATALOGUE, *orphans[0])

    reversals.reverse_orphans(CATALOGUE, "ethereum")

    assert (statuses(mine), balances_of(shop)) == (["reversed", "reversed"], {})
    assert deposits.orphans("ethereum", kind="wallet") == []


def test_a_deposit_is_reversed_once(shop: UUID, chain: Chain, rung: list[str]) -> None:
    mine = wallet(shop)
    chain.pay(mine, GROSS)
    chain.pay_and_confirm(wallet(shop, order_id="other"), GROSS)
    settled(mine)
    chain.fork(chain.network.confirmations + 1)
    orphan = next(o for o in deposits.orphans("ethereum", kind="wallet") if o[1] == mine.id)
    rung.clear()

    outcomes = at_once(6, lambda _: reversals.reverse_of_wallet(CATALOGUE, *orphan))

    assert (outcomes, rung) == ([None] * 6, [])
    assert balances_of(shop) == {}


# Queries ----------------------------------------------------------------------------------------------------


def test_due_invoices_and_due_wallets_are_separate(shop: UUID, chain: Chain) -> None:
    mine, sale = wallet(shop), invoice(shop)
    chain.mine(1, chain.transfer(mine, GROSS), chain.transfer(sale, GROSS))
    chain.confirm()

    def due(kind: deposits.OwnerKind) -> list[UUID]:
        return deposits.owners_due("ethereum", kind=kind, confirmations=chain.network.confirmations, limit=10)

    assert (due("wallet"), due("invoice")) == ([mine.id], [sale.id])
    settled(mine)
    assert (due("wallet"), due("invoice")) == ([], [sale.id])


def test_a_page_is_newest_first(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    for number in range(5):
        chain.pay(mine, GROSS, txid=f"0x{number}")

    assert [d.txid for d in wallet_deposits.page(mine.id, limit=2, offset=0)] == ["0x4", "0x3"]
    assert [d.txid for d in wallet_deposits.page(mine.id, limit=2, offset=4)] == ["0x0"]
    assert wallet_deposits.page(mine.id, limit=2, offset=5) == []


def test_a_sale_and_its_reorg_do_not_touch_a_wallet(shop: UUID, chain: Chain) -> None:
    mine, sale = wallet(shop), invoice(shop)
    received(chain, mine, GROSS)

    paid(chain, sale)
    chain.reorg(chain.network.confirmations)

    assert statuses(mine) == ["credited"]
    assert balances_of(shop) == {MATURING: NET}
