"""Events of money, keys, freezes and merchants are logged once they are committed, with their facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from models.db.base import repeat_on_deadlock, transaction
from models.merchants import allowlists, logos, notices, splits, term_changes
from models.merchants import rows as merchants
from models.payouts import freezes, order_checks
from models.payouts import rows as payouts
from tests.core.merchants.test_logos import PLAIN
from tests.models.builders import CATALOGUE, STANDARD, Chain
from tests.models.invoices.builders import invoice, paid
from tests.models.payouts.held import funded, payout

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def lines() -> Iterator[list[Any]]:
    with capture_logs() as captured:
        yield captured


def names(lines: list[Any]) -> list[str]:
    return [line["event"] for line in lines]


def test_a_paid_invoice_and_its_credited_deposit_are_logged(chain: Chain, lines: list[Any]) -> None:
    made = paid(chain, invoice())
    by_name = {line["event"]: line for line in lines}
    assert by_name["invoice.paid"] == {
        "event": "invoice.paid", "log_level": "info", "invoice": str(made.id), "merchant": str(made.merchant_id),
        "status": "paid",
    }  # fmt: skip
    credited = by_name["deposit.credited"]
    assert (credited["currency"], credited["network"]) == (made.pay_currency, made.network)
    assert credited["merchant"] == str(made.merchant_id)
    assert credited["txid"]
    assert names(lines).count("invoice.paid") == names(lines).count("deposit.credited") == 1


def test_an_invoice_that_is_underpaid_is_not_logged_as_paid(chain: Chain, lines: list[Any]) -> None:
    made = invoice()
    paid(chain, made, (made.payer_units or 0) // 2)
    assert "invoice.paid" not in names(lines)


def moved(order: payouts.PayoutRow, *statuses: Any) -> None:
    for status in statuses:
        with transaction():
            before = payouts.lock(order.id)
            assert before is not None
            payouts.move(CATALOGUE, before, status, txid="0xabc", error="it reverted" if status == "failed" else None)


def test_the_way_of_a_payout_is_logged_step_by_step(lines: list[Any]) -> None:
    order = payout(funded())
    moved(order, "approved", "broadcasting", "sent", "confirmed")
    ways = [line for line in lines if line["event"].startswith("payout.")]
    assert names(ways) == ["payout.approved", "payout.signed", "payout.sent", "payout.confirmed"]
    facts = {"payout": str(order.id), "merchant": str(order.merchant_id), "currency": "USDT", "network": "ethereum"}
    assert all(facts.items() <= line.items() for line in ways)
    assert ways[-1]["txid"] == "0xabc"


def test_a_payout_that_failed_names_its_problem(lines: list[Any]) -> None:
    order = payout(funded())
    moved(order, "approved", "broadcasting", "failed")
    assert (lines[-1]["event"], lines[-1]["log_level"], lines[-1]["problem"]) == (
        "payout.failed", "warning", "it reverted",
    )  # fmt: skip


def test_a_step_that_is_rolled_back_is_no_event(lines: list[Any]) -> None:
    def fail() -> None:
        with transaction():
            freezes.freeze("all", reason="r", frozen_by="operator")
            raise LookupError

    with pytest.raises(LookupError):
        repeat_on_deadlock(fail)
    assert names(lines) == []


def test_freezes_are_logged_when_they_are_set_and_lifted(lines: list[Any]) -> None:
    for _ in range(2):
        freezes.freeze("network", "tron", reason="r", frozen_by=freezes.RECONCILER)
        freezes.unfreeze("network", "bsc")
    freezes.unfreeze("network", "tron")
    assert lines == [
        {"event": "payouts.frozen", "log_level": "warning", "scope": "network", "name": "tron", "reason": "r",
         "by": "reconciler"},
        {"event": "payouts.unfrozen", "log_level": "warning", "scope": "network", "name": "tron", "freezes": 1},
    ]  # fmt: skip


def test_keys_are_logged_without_their_secrets(shop: UUID, lines: list[Any]) -> None:
    key = merchants.create_key(shop, "payout", "", SecretBox(DEVELOPMENT_SECRET_KEYS))
    assert [merchants.revoke_key(key.public_id) for _ in range(2)] == [True, False]
    made, revoked = lines
    assert (made["event"], made["key"], made["merchant"], made["kind"]) == (
        "key.created", key.public_id, str(shop), "payout",
    )  # fmt: skip
    assert (revoked["event"], revoked["key"]) == ("key.revoked", key.public_id)
    assert key.secret not in str(lines)


def test_every_change_of_a_merchant_is_logged_by_the_term(shop: UUID, lines: list[Any]) -> None:
    with transaction():
        merchants.set_cosign(shop, is_required=True)
        merchants.set_cosign(shop, is_required=True)
        merchants.set_face(shop, contact="shop@mail.example", accent="")
        logos.set_logo(shop, PLAIN)
        term_changes.set_fee_percent(shop, 1)
        term_changes.set_fee_fixed(shop, 1)
        term_changes.replace_accepted(shop, [])
        term_changes.set_discount(shop, [("USDT", "ethereum")], 1)
        term_changes.set_accuracy(shop, STANDARD, enabled=False, ppm=None)
        allowlists.replace(shop, ["192.0.2.1"])
        allowlists.replace(shop, ["192.0.2.1"])
        splits.set_config(shop, enabled=False, hold_hours=None)
        splits.set_config(shop, enabled=False, hold_hours=None)
        order_checks.set_fee_on_top(shop, is_fee_on_top=False)
        notices.set_address(shop, "ann@mail.example")
        assert lines == []
    assert {line["event"] for line in lines} == {"merchant.changed"}
    assert {line["merchant"] for line in lines} == {str(shop)}
    assert [line["terms"] for line in lines] == [
        ["cosign"], ["contact", "accent"], ["logo"], ["own_fee_ppm"], ["own_fee_fixed_usd_cents"], ["accepted_methods"],
        ["discounts"], ["accuracy"], ["ip_allowlist"], ["splits"], ["is_payout_fee_on_top"], ["owner_email"],
    ]  # fmt: skip
    assert "mail.example" not in str(lines)
