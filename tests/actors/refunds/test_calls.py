"""Refunds by a merchant's call: from available, once for each address and amount, up to the credited sum."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from actors import context
from actors.refunds import orders as refund_orders
from actors.refunds.calls import refund_payment
from core.addresses import addresses
from core.addresses.evm import checksum_evm
from core.errors import (
    ComplianceAddressBlocked,
    DomainError,
    IdempotencyKeyReused,
    PaymentNotFound,
    PayoutDestinationInternal,
    PayoutFeeUnavailable,
    PayoutFrozen,
    RefundBadAddress,
    RefundBadAmount,
    RefundExceedsRefundable,
    RefundFundsMaturing,
    RefundInsufficientFunds,
    RefundNetworkMismatch,
    RefundNoAddress,
    RefundNothingToRefund,
    RequestBadField,
)
from core.refunds.schemas import CreateRefund, PaymentRefund
from models.db.base import column, execute, one, rows, transaction
from models.deposits import crediting
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import AVAILABLE, PAYOUT_HELD
from models.payouts import freezes
from models.payouts import rows as payouts
from models.queue.calls import CallInfo, ReplayedError
from tests.actors.asking import ask, configure
from tests.models.builders import SENDER, USDT, Chain, merchant
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import PRICE, address, agnostic_invoice, invoice, paid
from tests.models.invoices.builders import create as create_invoice
from tests.models.ledger.figures import balances_of
from tests.models.ledger.sharing import share_with
from tests.models.payouts.builders import rich_shop, trade
from tests.models.queue.builders import info
from tests.models.refunds.builders import FEE, end, reread

pytestmark = pytest.mark.usefixtures("costs")

OTHER = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
PAYER = checksum_evm(SENDER)


@pytest.fixture
def shop(database: str) -> UUID:
    """A merchant with 100 USDT."""
    del database
    return rich_shop()


def refund(of: InvoiceRow, *, by: UUID | None = None, call: CallInfo | None = None, **body: Any) -> dict[str, Any]:
    """Request a refund as the API does."""
    answer: dict[str, Any] = ask(refund_payment, call or info(by or of.merchant_id), {"uuid": str(of.id)} | body)
    msgspec.convert(answer, PaymentRefund)
    return answer


def stored(answer: dict[str, Any]) -> payouts.PayoutRow:
    record = one("SELECT merchant_id FROM payouts WHERE id = %s", (answer["uuid"],))
    assert record is not None
    row = payouts.find(record[0], UUID(answer["uuid"]))
    assert row is not None
    return row


# Creation -------------------------------------------------------------------------------------------------


def test_a_refund_to_the_payer_is_approved_and_delivers_exactly_its_amount(
    shop: UUID, chain: Chain, rung: list[str]
) -> None:
    mine = paid(chain, invoice(shop))
    before = balances_of(shop)[AVAILABLE]
    rung.clear()

    answer = refund(mine, amount="4.25")

    row = stored(answer)
    assert answer == {
        "uuid": str(row.id),
        "payment_uuid": str(mine.id),
        "status": "process",
        "amount": "4.25",
        "currency": "USDT",
        "network": "ethereum",
        "address": PAYER,
        "txid": "",
        "approval_required": False,
        "is_final": False,
        "created_at": answer["created_at"],
    }
    units = 425 * USDT // 100
    assert (row.kind, row.order_id, row.created_by) == ("refund", f"refund:{row.id}", "pk_creator")
    assert (row.to_units, row.fee_units, row.held_units) == (units, FEE, units + FEE)
    assert balances_of(shop)[PAYOUT_HELD] == before - balances_of(shop)[AVAILABLE] == units + FEE
    assert rung == ["deliver_webhooks", "broadcast:ethereum"]
    assert [r[0] for r in rows("SELECT event FROM webhook_deliveries WHERE object_id = %s", (row.id,))] == [
        "payout.approved"
    ]


def test_a_refund_without_an_amount_refunds_all_that_is_left_with_fees(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop), PRICE + 7)
    refund(mine, amount="3")

    assert refund(mine)["amount"] == "7"


def test_a_refund_to_another_address_waits_for_approval(shop: UUID, chain: Chain, rung: list[str]) -> None:
    mine = paid(chain, invoice(shop))
    rung.clear()

    answer = refund(mine, address=OTHER)

    assert (answer["status"], answer["approval_required"], answer["address"]) == ("check", True, OTHER)
    assert rung == ["deliver_webhooks"]


def test_the_payers_address_is_recognised_in_any_case(shop: UUID, chain: Chain) -> None:
    answer = refund(paid(chain, invoice(shop)), address=SENDER.upper().replace("X", "x"))

    assert (answer["status"], answer["address"]) == ("process", PAYER)


@pytest.mark.parametrize(("to", "status"), [(PAYER, "awaiting_cosign"), (OTHER, "check")])
def test_with_co_signing_a_refund_waits(shop: UUID, chain: Chain, to: str, status: str) -> None:
    execute("UPDATE merchants SET is_cosign_required = true")

    assert refund(paid(chain, invoice(shop)), address=to)["status"] == status


def test_a_payment_is_found_by_its_order_id(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop, order_id="o-1"))

    assert refund(mine, uuid=None, order_id="o-1", network="ethereum")["payment_uuid"] == str(mine.id)


# Repetition -----------------------------------------------------------------------------------------------


def test_the_same_address_and_amount_return_the_same_refund(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    first = refund(mine, amount="2")

    assert refund(mine, amount="2.0", address=PAYER) == first
    assert refund(mine, amount="2", address=OTHER)["uuid"] != first["uuid"]
    assert refund(mine, amount="2.1")["uuid"] != first["uuid"]


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
def test_a_failed_or_cancelled_refund_can_be_made_again(shop: UUID, chain: Chain, ending: str) -> None:
    mine = paid(chain, invoice(shop))
    first = refund(mine)
    end(stored(first), ending)  # type: ignore[arg-type]

    again = refund(mine)

    assert again["uuid"] != first["uuid"]
    assert (again["amount"], balances_of(shop)[PAYOUT_HELD]) == ("10", PRICE + FEE)


def test_when_nothing_is_left_a_repetition_returns_the_refund_of_the_rest(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    refund(mine, amount="4")
    rest = refund(mine)

    assert refund(mine) == rest
    with pytest.raises(RefundNothingToRefund):
        refund(mine, address=OTHER)


def test_when_nothing_is_left_a_repetition_returns_the_refund_of_the_whole(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    whole = refund(mine, amount="10")

    assert refund(mine) == whole


def test_partial_refunds_do_not_count_as_a_whole_one(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    refund(mine, amount="4")
    refund(mine, amount="6")

    with pytest.raises(RefundNothingToRefund):
        refund(mine)


def test_the_rest_is_refunded_even_after_an_equal_partial_refund(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    half = refund(mine, amount="5")

    assert refund(mine)["uuid"] != half["uuid"]


def test_concurrent_refunds_never_exceed_the_credited_sum(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))

    outcomes = at_once(8, lambda number: refund(mine, amount=f"3.{number}"))

    refused = [o for o in outcomes if isinstance(o, Exception)]
    assert all(isinstance(o, RefundExceedsRefundable) for o in refused)
    assert 2 <= len(outcomes) - len(refused) <= 3
    assert sum(column("SELECT amount_units FROM payouts")) <= PRICE


def test_concurrent_equal_refunds_make_one(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))

    outcomes = at_once(6, lambda _: refund(mine)["uuid"])

    assert len(set(map(str, outcomes))) == 1
    assert balances_of(shop)[PAYOUT_HELD] == PRICE + FEE


def test_an_idempotency_key_is_honoured(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    first = refund(mine, amount="1", call=info(shop, "key"))

    with pytest.raises(ReplayedError) as replay:
        refund(mine, amount="1", call=info(shop, "key"))
    assert msgspec.json.decode(replay.value.response or "") == first
    with pytest.raises(IdempotencyKeyReused):
        refund(mine, amount="2", call=info(shop, "key", b"g"))


# Refusals -------------------------------------------------------------------------------------------------


def refused(error: type[DomainError], of: InvoiceRow, **body: Any) -> None:
    """Check that a refused refund leaves no trace."""
    before = rows("SELECT id FROM payouts"), balances_of(of.merchant_id)
    with pytest.raises(error):
        refund(of, **body)
    assert (rows("SELECT id FROM payouts"), balances_of(of.merchant_id)) == before


@pytest.mark.parametrize("amount", ["0", "0.0000001"])
def test_a_bad_amount_is_refused(shop: UUID, chain: Chain, amount: str) -> None:
    refused(RefundBadAmount, paid(chain, invoice(shop)), amount=amount)


def test_an_amount_below_the_networks_minimum_is_refused(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "smallest_units", lambda _network, _address: 4_000_000)
    mine = paid(chain, invoice(shop))
    refused(RefundBadAmount, mine, amount="3.999999")
    refund(mine, amount="7")

    refused(RefundBadAmount, mine)


def test_an_amount_above_the_rest_is_refused(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    refund(mine, amount="4")

    refused(RefundExceedsRefundable, mine, amount="6.000001")


@pytest.mark.parametrize("state", ["unpaid", "short", "agnostic"])
def test_a_payment_without_a_credit_cannot_be_refunded(shop: UUID, chain: Chain, state: str) -> None:
    mine = invoice(shop)
    if state == "short":
        paid(chain, mine, USDT)
    if state == "agnostic":
        new = agnostic_invoice(shop)
        create_invoice(new, quote_s=None)
        with pytest.raises(RefundNothingToRefund):
            refund(mine, uuid=str(new.id))
        return

    refused(RefundNothingToRefund, mine, amount="1", address=OTHER)


def test_another_network_is_refused(shop: UUID, chain: Chain) -> None:
    refused(RefundNetworkMismatch, paid(chain, invoice(shop)), network="bsc")


@pytest.mark.parametrize("bad", ["0x1", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "0x" + "0" * 40])
def test_a_bad_address_is_refused(shop: UUID, chain: Chain, bad: str) -> None:
    refused(RefundBadAddress, paid(chain, invoice(shop)), address=bad)


def test_without_a_single_payer_an_address_is_required(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    execute("UPDATE invoices SET payer_address = ''")

    refused(RefundNoAddress, mine)
    assert refund(mine, address=PAYER)["status"] == "check"


def test_our_own_addresses_are_refused(shop: UUID, chain: Chain) -> None:
    _, ours = address()

    refused(PayoutDestinationInternal, paid(chain, invoice(shop)), address=ours)


def test_addresses_on_the_deny_list_are_refused(shop: UUID, chain: Chain, database: str, tmp_path: Path) -> None:
    listed = tmp_path / "denied"
    listed.write_text(SENDER + "\n")
    configure(database, DENY_LIST=str(listed))

    refused(ComplianceAddressBlocked, paid(chain, invoice(shop)))


def test_a_freeze_stops_refunds_but_not_their_repetition(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    first = refund(mine, amount="1")
    with transaction():
        freezes.freeze("all", reason="test", frozen_by="test")

    refused(PayoutFrozen, mine, amount="2")
    assert refund(mine, amount="1") == first


def test_an_unknown_fee_refuses_a_refund(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    execute("DELETE FROM network_fees")
    context.context().market.forget()

    refused(PayoutFeeUnavailable, mine)


def test_missing_and_maturing_funds_have_different_errors(database: str, chain: Chain) -> None:
    del database
    poor = merchant()
    mine = paid(chain, invoice(poor))

    refused(RefundFundsMaturing, mine, amount="5")
    chain.mature()
    crediting.release_matured(chain.network, limit=10)
    # The platform fee is not returned, so that the whole price exceeds the balance.
    refused(RefundInsufficientFunds, mine)
    assert refund(mine, amount="5")["status"] == "process"


def test_a_refunds_part_from_shares_needs_no_available_money(database: str, chain: Chain) -> None:
    """Nine tenths of 5 USDT come from hold. Maturing money will cover the rest, but not the whole."""
    del database
    poor = merchant()
    share_with(poor, 90)
    mine = paid(chain, invoice(poor))

    refused(RefundFundsMaturing, mine, amount="5")
    chain.mature()
    crediting.release_matured(chain.network, limit=10)
    assert refund(mine, amount="5")["status"] == "process"
    assert balances_of(poor)[PAYOUT_HELD] == 5 * USDT + FEE


def test_another_merchants_payment_is_not_found(shop: UUID, chain: Chain) -> None:
    theirs = paid(chain, invoice(merchant()))

    with pytest.raises(PaymentNotFound):
        refund(theirs, by=shop)
    assert rows("SELECT 1 FROM payouts") == []


def test_an_item_of_a_batch_is_read_as_a_request() -> None:
    ctx = context.context()

    assert refund_orders.read_item(ctx, {"order_id": "o", "amount": "1"}) == CreateRefund(order_id="o", amount="1")
    for wrong, error in (([], RequestBadField), ({"order_id": "o", "amount": 1}, RefundBadAmount)):
        with pytest.raises(error):
            refund_orders.read_item(ctx, wrong)


def test_the_end_of_a_refund_updates_its_payment(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    made = stored(refund(mine))

    assert end(made, "confirmed").status == "confirmed"

    assert reread(made).txid == "0xrefund"
    assert refund(mine)["status"] == "paid"


def test_a_refund_above_the_signers_limit_is_refused(shop: UUID, chain: Chain, database: str) -> None:
    configure(database, SIGNER_PAYOUT_MAX_USD="2")
    trade(USDT="1")
    mine = paid(chain, invoice(shop))
    refused(RefundBadAmount, mine, amount="2.01")
    assert refund(mine, amount="2")["status"] == "process"
