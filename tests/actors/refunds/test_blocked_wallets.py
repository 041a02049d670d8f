"""Sends back a blocked wallet's held deposits once, coin by coin, and nothing that it credits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from actors import context
from actors.refunds import uncredited
from actors.refunds.blocked_wallets import refund_blocked_wallet
from actors.wallets.ticks import credit_unblocked_wallets
from core.addresses.evm import checksum_evm
from core.errors import (
    DomainError,
    PayoutAmountBelowFee,
    PayoutBadAmount,
    PayoutDestinationInternal,
    PayoutFeeUnavailable,
    PayoutFrozen,
    RefundBadAddress,
    RefundNothingToRefund,
    WalletStaticNotFound,
)
from core.payouts.schemas import Payout
from models.db.base import execute, transaction
from models.ledger.ledger import MATURING, PAYOUT_HELD
from models.payouts import freezes
from models.wallets.rows import WalletRow
from tests.actors.asking import ask, configure
from tests.actors.refunds.test_calls import OTHER
from tests.actors.refunds.test_resolutions import made
from tests.models.builders import USDT, Chain, merchant
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import address
from tests.models.ledger.figures import balances_of
from tests.models.payouts.builders import charge, trade
from tests.models.queue.builders import info
from tests.models.refunds.builders import FEE, end, suspense
from tests.models.wallets.builders import received, set_blocked, settled, statuses, wallet

pytestmark = pytest.mark.usefixtures("costs", "shop_endpoint")


def blocked(shop: UUID, chain: Chain, **units: int) -> WalletRow:
    """Make a blocked wallet that holds a sum of each coin."""
    mine = set_blocked(wallet(shop), is_blocked=True)
    for currency, amount in units.items():
        chain.pay(mine, amount, currency=currency)
    chain.confirm()
    settled(mine)
    return mine


def send_back(of: WalletRow, *, by: UUID | None = None, **body: Any) -> list[Payout]:
    """Call as the API does."""
    wanted = {"uuid": str(of.id), "refund_address": OTHER} | body
    answer = ask(refund_blocked_wallet, info(by or of.merchant_id), wanted)
    return msgspec.convert(answer["payouts"], list[Payout])


def refused(error: type[DomainError], of: WalletRow, **body: Any) -> None:
    """Check that a refused refund leaves no trace."""
    before = len(made()), balances_of(of.merchant_id)
    with pytest.raises(error):
        send_back(of, **body)
    assert (len(made()), balances_of(of.merchant_id)) == before


def test_each_coin_is_sent_back_less_its_fee_at_once(shop: UUID, chain: Chain, rung: list[str]) -> None:
    mine = blocked(shop, chain, USDT=2 * USDT, DAI=5 * USDT)
    received(chain, mine, USDT + 7)

    shown = send_back(mine)

    assert {(p.currency, p.amount, p.commission) for p in shown} == {("USDT", "2.9", "0.1"), ("DAI", "4.9", "0.1")}
    assert {(p.status, p.approval_required, p.address) for p in shown} == {("process", False, OTHER)}
    for row in made():
        assert (row.kind, row.funded_from, row.wallet_id) == ("wallet_refund", "suspense", mine.id)
        assert (row.order_id, row.created_by) == (f"refund:{row.id}", "pk_creator")
    assert (suspense(shop), suspense(shop, "DAI"), balances_of(shop)) == (0, 0, {PAYOUT_HELD: 3 * USDT})
    assert rung == ["deliver_webhooks", "broadcast:ethereum"]

    for row in made():
        end(row, "confirmed")
    refused(RefundNothingToRefund, mine)
    assert balances_of(shop) == {}


def test_with_co_signing_a_refund_waits_for_the_second_key(shop: UUID, chain: Chain) -> None:
    execute("UPDATE merchants SET is_cosign_required = true")

    (shown,) = send_back(blocked(shop, chain, USDT=USDT))

    assert shown.status == "awaiting_cosign"


def test_a_coin_below_its_fee_stays_and_stops_no_other(shop: UUID, chain: Chain) -> None:
    mine = blocked(shop, chain, USDT=FEE, DAI=USDT)

    assert [p.currency for p in send_back(mine)] == ["DAI"]

    assert suspense(shop) == FEE
    refused(PayoutAmountBelowFee, mine)


def test_the_wallet_is_found_by_its_address(shop: UUID, chain: Chain) -> None:
    mine = blocked(shop, chain, USDT=USDT)

    assert send_back(mine, uuid=None, address=checksum_evm(mine.address))[0].amount == "0.9"


def test_many_small_deposits_do_not_keep_larger_ones_from_being_sent(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uncredited, "DEPOSITS_MAX", 1)
    mine = blocked(shop, chain, USDT=1)
    received(chain, mine, USDT)

    assert send_back(mine)[0].amount == "0.9"


def test_a_sum_above_the_signers_limit_is_sent_back_in_parts(shop: UUID, chain: Chain, database: str) -> None:
    configure(database, SIGNER_PAYOUT_MAX_USD="4")
    trade(USDT="1", DAI="1")
    mine = blocked(shop, chain, USDT=3 * USDT, DAI=USDT)
    for units in (2 * USDT, USDT, 9 * USDT):
        received(chain, mine, units)

    parts = [sorted((p.currency, p.amount) for p in send_back(mine)) for _ in range(2)]

    assert parts == [[("DAI", "0.9"), ("USDT", "3.9")], [("USDT", "1.9")]]
    assert suspense(shop) == 9 * USDT
    refused(PayoutBadAmount, mine)


def freeze_dai(_shop: UUID) -> None:
    freezes.freeze("coin", "DAI:ethereum", reason="test", frozen_by="test")


def forget_what_dai_costs(_shop: UUID) -> None:
    execute("DELETE FROM network_fees WHERE currency = 'DAI'")
    context.context().market.forget()


@pytest.mark.parametrize("hinder", [freeze_dai, forget_what_dai_costs])
def test_a_coin_that_cannot_be_sent_now_stays_and_stops_no_other(
    shop: UUID, chain: Chain, hinder: Callable[[UUID], None]
) -> None:
    mine = blocked(shop, chain, USDT=USDT, DAI=USDT)
    hinder(shop)

    assert [p.currency for p in send_back(mine)] == ["USDT"]

    assert suspense(shop, "DAI") == USDT
    refused(PayoutFeeUnavailable if hinder is forget_what_dai_costs else PayoutFrozen, mine)


def test_if_no_coin_can_be_sent_the_temporary_reason_is_returned(shop: UUID, chain: Chain) -> None:
    mine = blocked(shop, chain, USDT=FEE, DAI=USDT)
    freeze_dai(shop)

    refused(PayoutFrozen, mine)


def test_credited_deposits_are_not_sent_back(shop: UUID, chain: Chain) -> None:
    mine = wallet(shop)
    received(chain, mine, USDT)
    received(Chain("bsc"), mine, USDT)

    refused(RefundNothingToRefund, mine)
    refused(RefundNothingToRefund, set_blocked(mine, is_blocked=True))
    assert statuses(mine) == ["credited", "credited"]


def test_each_network_has_its_own_refund(shop: UUID, chain: Chain) -> None:
    charge("USDT", "bsc", units=USDT // 10)
    mine = blocked(shop, chain, USDT=USDT)
    received(Chain("bsc"), mine, USDT)

    sent = send_back(mine)

    assert {refund.network for refund in sent} == {"ethereum", "bsc"}


def test_unconfirmed_deposits_are_not_sent_back(shop: UUID, chain: Chain) -> None:
    mine = set_blocked(wallet(shop), is_blocked=True)
    chain.pay(mine, USDT)
    settled(mine)

    refused(RefundNothingToRefund, mine)


def test_unblocking_credits_deposits_that_are_not_being_sent_back(shop: UUID, chain: Chain) -> None:
    mine = blocked(shop, chain, USDT=USDT)
    send_back(mine)
    received(chain, mine, 3 * USDT)

    set_blocked(mine, is_blocked=False)
    credit_unblocked_wallets()

    assert statuses(mine) == ["confirmed", "credited"]
    assert balances_of(shop)[PAYOUT_HELD] == USDT
    assert 2 * USDT < balances_of(shop)[MATURING] < 3 * USDT


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
@pytest.mark.parametrize("is_blocked", [True, False])
def test_a_failed_refund_holds_or_credits_its_deposits_again(
    shop: UUID, chain: Chain, ending: str, *, is_blocked: bool
) -> None:
    mine = blocked(shop, chain, USDT=USDT + 7)
    send_back(mine)
    set_blocked(mine, is_blocked=is_blocked)
    credit_unblocked_wallets()

    end(made()[0], ending)  # type: ignore[arg-type]
    credit_unblocked_wallets()

    if is_blocked:
        assert (suspense(shop), balances_of(shop)) == (USDT + 7, {})
        assert send_back(mine)[0].amount == "0.9"
    else:
        assert statuses(mine) == ["credited"]
        assert balances_of(shop).keys() == {MATURING}


def test_a_deposit_is_sent_back_or_credited_but_never_both(shop: UUID, chain: Chain) -> None:
    mine = blocked(shop, chain, USDT=USDT)

    def work(number: int) -> object:
        if number % 2:
            set_blocked(mine, is_blocked=False)
            credit_unblocked_wallets()
            return None
        return send_back(mine)

    outcomes = at_once(6, work)

    assert all(isinstance(o, RefundNothingToRefund) for o in outcomes if isinstance(o, Exception))
    assert len(made()) + statuses(mine).count("credited") == 1


def test_an_impossible_destination_is_refused(shop: UUID, chain: Chain) -> None:
    mine = blocked(shop, chain, USDT=USDT)
    _, ours = address()

    refused(RefundBadAddress, mine, refund_address="0x1")
    refused(PayoutDestinationInternal, mine, refund_address=ours)
    with transaction():
        freezes.freeze("network", "ethereum", reason="test", frozen_by="test")
    refused(PayoutFrozen, mine)


def test_another_merchants_wallet_is_not_found(shop: UUID, chain: Chain) -> None:
    theirs = blocked(merchant(), chain, USDT=USDT)

    for body in ({}, {"uuid": None, "address": theirs.address}, {"uuid": str(uuid4())}):
        with pytest.raises(WalletStaticNotFound):
            send_back(theirs, by=shop, **body)
    assert made() == []
