"""A payout shows why it waits, in documented words, until the wait is over."""

from __future__ import annotations

from typing import Final, get_args

import msgspec
import pytest

from core.payout_links.schemas import PayoutLink
from core.payouts.schemas import Payout
from core.payouts.states import WaitingFor
from models.db.base import execute, transaction
from models.payout_links import rows as payout_links
from models.payout_links import views as payout_link_views
from models.payouts import freezes
from models.payouts import queue as payout_queue
from models.payouts import views as payout_views
from models.payouts.rows import PayoutRow
from models.spends import signing_stops
from tests.models.builders import CATALOGUE
from tests.models.payout_links import builders
from tests.models.payouts.builders import lend
from tests.models.payouts.held import funded, payout, reread

pytestmark = pytest.mark.usefixtures("database")

SIGNER_S: Final[tuple[WaitingFor, ...]] = ("liquidity", "limit", "freeze", "fee", "network")


def shown_reason(of: PayoutRow) -> str | None:
    """Return the reason shown by a payout object, or None if it has no such field."""
    body = payout_views.payout(CATALOGUE, reread(of))
    assert "waiting_for" not in payout_views.webhook(CATALOGUE, reread(of)), "events announce statuses"
    return body.get("waiting_for")


def test_a_payout_shows_why_it_waits_until_it_is_signed_or_ends() -> None:
    order = payout(funded(), status="approved")
    assert shown_reason(order) is None
    for kind in SIGNER_S:
        payout_queue.postpone(order.id, seconds=60, reason=f"a test of {kind}", waiting_for=kind)
        assert shown_reason(order) == kind
    assert payout_queue.refuse(order.id, reason="the token refuses it") is False
    assert shown_reason(order) == "network"
    payout_queue.postpone(order.id, seconds=60, reason="short", waiting_for="liquidity")
    signing_stops.tell_payouts("ethereum", "a test")
    assert shown_reason(order) == "network"
    execute("UPDATE payouts SET wait_reason = 'without a kind', wait_kind = '' WHERE id = %s", (order.id,))
    assert shown_reason(order) == "network"
    with transaction():
        payout_queue.take(order.id)
    assert shown_reason(order) is None
    payout_queue.explain(order.id, reason="one provider alone")
    for status, shown in (("sent", "network"), ("confirmed", None), ("failed", None), ("cancelled", None)):
        execute("UPDATE payouts SET status = %s WHERE id = %s", (status, order.id))
        assert shown_reason(order) == shown


def test_approvals_freezes_and_debts_show_at_once() -> None:
    merchant_id = funded()
    order = payout(merchant_id)
    assert shown_reason(order) == "approval"
    assert shown_reason(payout(merchant_id, status="awaiting_cosign")) == "cosign"
    execute("UPDATE payouts SET status = 'approved' WHERE id = %s", (order.id,))
    refund = payout(merchant_id, kind="refund", status="approved", is_approval_required=False)
    lend(merchant_id, 1)
    assert shown_reason(order) == "debt"
    execute("UPDATE accounts SET currency = 'ETH' WHERE holder = %s AND kind = 'debt'", (merchant_id,))
    assert (shown_reason(order), shown_reason(refund)) == ("debt", None), (
        "a debt in another coin stops no refund to the payer"
    )
    execute("UPDATE payouts SET is_approval_required = true WHERE id = %s", (refund.id,))
    assert shown_reason(refund) == "debt", "but one to another address"
    execute("UPDATE payouts SET is_approval_required = false WHERE id = %s", (refund.id,))
    freezes.freeze("network", "ethereum", reason="a test", frozen_by=freezes.RECOVERY)
    assert shown_reason(refund) == "network", "signing stopped without a decision"
    for scope, name in (
        ("all", ""), ("network", "ethereum"), ("merchant", str(merchant_id)), ("coin", "USDT:ethereum")
    ):  # fmt: skip
        freezes.freeze(scope, name, reason="a test", frozen_by="operator")  # type: ignore[arg-type]
        assert (shown_reason(order), shown_reason(refund)) == ("freeze", "freeze")
        freezes.unfreeze(scope, name)  # type: ignore[arg-type]
    assert shown_reason(refund) == "network"


def test_every_reason_is_documented_and_allowed_by_the_table() -> None:
    order = payout(funded(), status="approved")
    for kind in get_args(WaitingFor):
        payout_queue.postpone(order.id, seconds=60, reason="a test", waiting_for=kind)
        body = payout_views.payout(CATALOGUE, reread(order))
        assert msgspec.convert(body, Payout).waiting_for == kind


def test_a_cheque_shows_why_its_payout_waits() -> None:
    merchant_id = builders.rich_merchant()
    link = builders.claimed(builders.funded(merchant_id))
    assert link.payout_id is not None
    execute("UPDATE payouts SET status = 'approved' WHERE id = %s", (link.payout_id,))
    shown = payout_links.find(merchant_id, link.id)
    assert shown is not None
    assert "waiting_for" not in payout_link_views.link(CATALOGUE, shown)
    payout_queue.postpone(link.payout_id, seconds=60, reason="a test", waiting_for="liquidity")
    shown = payout_links.find(merchant_id, link.id)
    assert shown is not None
    body = payout_link_views.link(CATALOGUE, shown)
    assert msgspec.convert(body, PayoutLink).waiting_for == "liquidity"
