"""Sends back a wrong amount, or a stray, when its merchant calls: all of it less the network fee."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest

from actors.invoices.resolution import resolve_payment
from actors.refunds import uncredited
from core.addresses import addresses
from core.addresses.evm import checksum_evm
from core.errors import (
    DomainError,
    PaymentNotFound,
    PaymentNotResolvable,
    PayoutAmountBelowFee,
    PayoutBadAmount,
    PayoutDestinationInternal,
    PayoutFrozen,
    RefundBadAddress,
    RefundNetworkMismatch,
    RefundNoAddress,
)
from core.refunds.schemas import PaymentRefund, ResolvedPayment
from models.db.base import execute, transaction
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import DEBT, PAYOUT_HELD, Account, Transfer, post
from models.payouts import freezes
from models.payouts import rows as payouts
from tests.actors.asking import ask, configure
from tests.actors.refunds.test_calls import OTHER, PAYER
from tests.models.builders import SENDER, USDT, Chain, merchant
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import address, expired, in_state, invoice, paid, settled
from tests.models.ledger.figures import balances_of, net_of
from tests.models.payouts.builders import trade
from tests.models.queue.builders import info
from tests.models.refunds.builders import FEE, end, short, suspense

pytestmark = pytest.mark.usefixtures("costs", "shop_endpoint")

STRANGER = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"


def resolve(of: InvoiceRow, action: str = "refund", *, by: UUID | None = None, **body: Any) -> dict[str, Any]:
    """Request a resolution as the API does."""
    wanted = {"uuid": str(of.id), "action": action} | body
    answer: dict[str, Any] = ask(resolve_payment, info(by or of.merchant_id), wanted)
    msgspec.convert(answer, ResolvedPayment)
    return answer


def made() -> list[payouts.PayoutRow]:
    return payouts.PayoutRow.read("true ORDER BY p.id")


def refused(error: type[DomainError], of: InvoiceRow, **body: Any) -> None:
    """Check that a refused resolution leaves no trace."""
    before = len(made()), balances_of(of.merchant_id)
    with pytest.raises(error):
        resolve(of, **body)
    assert (len(made()), balances_of(of.merchant_id)) == before


# A wrong amount ---------------------------------------------------------------------------------------------


def test_a_wrong_amount_is_sent_back_less_the_network_fee(shop: UUID, chain: Chain, rung: list[str]) -> None:
    mine = short(chain, shop)

    answer = resolve(mine)

    (row,) = made()
    refund = msgspec.convert(answer["refund"], PaymentRefund)
    assert (answer["uuid"], answer["payment_status"], answer["is_final"]) == (str(mine.id), "wrong_amount", False)
    assert (refund.uuid, refund.payment_uuid, refund.amount, refund.address) == (
        str(row.id),
        str(mine.id),
        "4.9",
        PAYER,
    )
    assert (refund.status, refund.approval_required) == ("process", False)
    assert (row.kind, row.funded_from, row.order_id) == ("resolve", "suspense", f"refund:{row.id}")
    assert (row.to_units, row.fee_units, row.created_by) == (5 * USDT - FEE, FEE, "pk_creator")
    assert (suspense(shop), balances_of(shop)) == (0, {PAYOUT_HELD: 5 * USDT})
    assert rung[-1] == "broadcast:ethereum"

    end(row, "confirmed")

    assert settled(mine).is_final
    refused(PaymentNotResolvable, mine)


def test_a_sum_above_the_signers_limit_is_sent_back_in_parts(shop: UUID, chain: Chain, database: str) -> None:
    configure(database, SIGNER_PAYOUT_MAX_USD="3")
    trade(USDT="1")
    mine = invoice(shop)
    for units in (2 * USDT, 3 * USDT):
        paid(chain, mine, units)
    expired(chain, mine)

    parts = [resolve(mine)["refund"]["amount"] for _ in range(2)]

    assert parts == ["2.9", "1.9"]
    refused(PaymentNotResolvable, mine)
    for row in made():
        end(row, "confirmed")
    assert settled(mine).is_final


def test_many_small_deposits_do_not_keep_larger_ones_from_being_sent(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uncredited, "DEPOSITS_MAX", 1)
    mine = invoice(shop)
    for units in (1, 5 * USDT):
        paid(chain, mine, units)
    expired(chain, mine)

    assert resolve(mine)["refund"]["amount"] == "4.9"
    refused(PayoutAmountBelowFee, mine)


def test_a_resolution_to_another_address_waits_for_approval(shop: UUID, chain: Chain) -> None:
    refund = resolve(short(chain, shop), address=OTHER, network="ethereum")["refund"]

    assert (refund["status"], refund["approval_required"], refund["address"]) == ("check", True, OTHER)


def test_a_wrong_amount_is_sent_back_once(shop: UUID, chain: Chain) -> None:
    mine = short(chain, shop)

    outcomes = at_once(6, lambda _: resolve(mine))

    refusals = [o for o in outcomes if isinstance(o, Exception)]
    assert len(refusals) == 5
    assert all(isinstance(o, PaymentNotResolvable) for o in refusals)
    assert len(made()) == 1


def test_a_wrong_amount_is_accepted_or_sent_back_but_never_both(shop: UUID, chain: Chain) -> None:
    mine = short(chain, shop)

    outcomes = at_once(6, lambda number: resolve(mine, "accept" if number % 2 else "refund"))

    assert sum(not isinstance(o, Exception) for o in outcomes) == 1


def test_a_deposit_after_a_refund_is_sent_back_by_another(shop: UUID, chain: Chain) -> None:
    mine = short(chain, shop)
    resolve(mine)
    paid(chain, mine, 2 * USDT)

    assert resolve(mine)["refund"]["amount"] == "1.9"
    for row in made():
        end(row, "confirmed")
    assert settled(mine).is_final


def test_a_failed_refund_can_be_requested_again(shop: UUID, chain: Chain) -> None:
    mine = short(chain, shop)
    resolve(mine)
    end(made()[0], "failed")

    assert resolve(mine)["refund"]["amount"] == "4.9"


@pytest.mark.parametrize("state", ["check", "paid", "expired"])
def test_payments_in_other_states_cannot_be_sent_back(shop: UUID, chain: Chain, state: str) -> None:
    mine = invoice(shop)
    if state == "paid":
        paid(chain, mine)
    elif state == "expired":
        expired(chain, mine)
    else:
        paid(chain, mine, USDT)

    refused(PaymentNotResolvable, mine, address=OTHER)


def test_a_sum_below_the_fee_is_not_sent_back(shop: UUID, chain: Chain) -> None:
    refused(PayoutAmountBelowFee, short(chain, shop, FEE))


def test_a_sum_below_the_networks_minimum_is_not_sent_back(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "smallest_units", lambda _network, _address: 4_000_000)

    refused(PayoutAmountBelowFee, short(chain, shop, 4 * USDT + FEE - 1))
    assert resolve(short(chain, shop, 4 * USDT + FEE))["refund"]["amount"] == "4"


def test_an_impossible_destination_is_refused(shop: UUID, chain: Chain) -> None:
    mine = short(chain, shop)
    _, ours = address()

    refused(RefundNetworkMismatch, mine, network="bsc")
    refused(RefundBadAddress, mine, address="0x1")
    refused(PayoutDestinationInternal, mine, address=ours)
    execute("UPDATE invoices SET payer_address = ''")
    refused(RefundNoAddress, mine)


@pytest.mark.parametrize("reason", ["freeze", "debt"])
def test_a_merchant_that_cannot_pay_out_cannot_send_back(shop: UUID, chain: Chain, reason: str) -> None:
    mine = short(chain, shop)
    with transaction():
        if reason == "freeze":
            freezes.freeze("merchant", str(shop), reason="test", frozen_by="test")
        else:
            post("owes", [Transfer(Account(shop, DEBT, "USDT"), Account(merchant(), "available", "USDT"), 1)])

    refused(PayoutFrozen, mine)


def test_another_merchants_payment_is_not_found(shop: UUID, chain: Chain) -> None:
    theirs = short(chain, merchant())

    with pytest.raises(PaymentNotFound):
        resolve(theirs, by=shop)


# Strays -----------------------------------------------------------------------------------------------------


def stray(chain: Chain, to: InvoiceRow, units: int, *, currency: str, ordinal: str = "0", **more: Any) -> None:
    """Receive a stray in a foreign coin, by the transaction 0xstray."""
    deposit = chain.transfer(to, units, currency=currency, stray="asset", txid="0xstray").but(ordinal=ordinal)
    chain.mine(1, deposit.but(**more))
    chain.confirm()
    settled(to)


@pytest.mark.parametrize("state", ["check", "paid", "expired"])
def test_a_stray_is_sent_back_to_its_sender_in_its_own_coin(shop: UUID, chain: Chain, state: str) -> None:
    mine = in_state(chain, shop, state)
    stray(chain, mine, 5 * USDT, currency="DAI", sender=STRANGER)

    refund = resolve(mine, txid="0xstray")["refund"]

    assert (refund["currency"], refund["network"], refund["amount"]) == ("DAI", "ethereum", "4.9")
    assert (refund["address"], refund["status"]) == (checksum_evm(STRANGER), "process")
    assert made()[0].kind == "stray"
    refused(PaymentNotResolvable, mine, txid="0xstray")
    end(made()[0], "confirmed")
    assert settled(mine).status == state


def test_the_sales_payer_does_not_count_as_the_strays_sender(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    stray(chain, mine, 5 * USDT, currency="DAI", sender=STRANGER)

    assert resolve(mine, txid="0xstray", address=checksum_evm(SENDER))["refund"]["status"] == "check"


def test_a_coin_below_its_fee_stops_no_other_of_its_transaction(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    stray(chain, mine, FEE, currency="DAI", ordinal="0")
    stray(chain, mine, 5 * USDT, currency="USDC", ordinal="1")
    stray(chain, mine, USDT, currency="USDC", ordinal="2")

    assert resolve(mine, txid="0xstray")["refund"]["amount"] == "5.9"

    assert [(row.currency, row.held_units) for row in made()] == [("USDC", 6 * USDT)]
    assert suspense(shop, "DAI") == FEE
    refused(PayoutAmountBelowFee, mine, txid="0xstray")
    assert "refund" not in resolve(mine, "accept", txid="0xstray")


def test_each_coin_of_a_transaction_has_its_own_refund(shop: UUID, chain: Chain, rung: list[str]) -> None:
    mine = invoice(shop)
    stray(chain, mine, 2 * USDT, currency="DAI", ordinal="0")
    stray(chain, mine, 5 * USDT, currency="USDC", ordinal="1")

    resolve(mine, txid="0xstray")

    assert [row.currency for row in made()] == ["DAI", "USDC"]
    assert rung.count("broadcast:ethereum") == 1


def test_a_stray_on_another_network_is_sent_back_there(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    bsc = Chain("bsc")
    bsc.pay_and_confirm(mine, 5 * USDT, stray="network", txid="0xthere")
    settled(mine)

    refused(RefundNetworkMismatch, mine, txid="0xthere", network="ethereum")
    refund = resolve(mine, txid="0xthere", network="bsc")["refund"]

    assert (refund["currency"], refund["network"]) == ("USDT", "bsc")
    end(made()[0], "confirmed")
    assert net_of(Account(UUID(int=0), "custody", "USDT", "bsc")) == -FEE
    assert chain.height == 100


@pytest.mark.parametrize("txid", ["0xunknown", "0xdust"])
def test_dust_and_unknown_strays_are_not_sent_back(shop: UUID, chain: Chain, txid: str) -> None:
    mine = invoice(shop)
    chain.pay_and_confirm(mine, USDT, currency="DAI", stray="dust", txid="0xdust")
    settled(mine)

    refused(PaymentNotResolvable, mine, txid=txid)


def test_a_payment_is_accepted_despite_a_stray(shop: UUID, chain: Chain) -> None:
    answer = resolve(short(chain, shop), "accept")

    assert (answer["payment_status"], "refund" in answer) == ("paid", False)


def test_a_stray_above_the_signers_limit_stays_in_suspense(shop: UUID, chain: Chain, database: str) -> None:
    configure(database, SIGNER_PAYOUT_MAX_USD="4")
    trade(USDT="1")
    mine = short(chain, shop)
    refused(PayoutBadAmount, mine)
    configure(database, SIGNER_PAYOUT_MAX_USD="5")
    assert resolve(mine)["refund"]["status"] == "process"
