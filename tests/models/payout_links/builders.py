"""Makes cheques, and moves clocks past their ends. USDT is one whole."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from core.ids import uuid7
from models.db.base import execute, transaction
from models.payout_links import claims as payout_link_claims
from models.payout_links import rows as payout_links
from models.payout_links.rows import PayoutLinkRow
from tests.models.builders import CATALOGUE, USDT, merchant
from tests.models.payouts.builders import fund

AMOUNT: Final = 25 * USDT
LINK_FEE: Final = USDT
HELD: Final = AMOUNT + LINK_FEE
ANN: Final = "0x52908400098527886e0f7030069857d2e4169ee7"
BOB: Final = "0x8617e340b3d01fa5f11f306f4090fd50e238070d"


def rich_merchant(units: int = 100 * USDT) -> UUID:
    merchant_id = merchant()
    fund(merchant_id, units)
    return merchant_id


def new_link(merchant_id: UUID, *, lifetime_h: int = 1, **columns: Any) -> PayoutLinkRow:
    """Return a cheque over 25 USDT on ethereum; its token is its id's text."""
    link_id, now = uuid7(), payout_links.now()
    return PayoutLinkRow(
        **{
            "id": link_id,
            "merchant_id": merchant_id,
            "currency": "USDT",
            "network": "ethereum",
            "amount_units": AMOUNT,
            "fee_units": LINK_FEE,
            "token_hash": hashlib.sha256(str(link_id).encode()).digest(),
            "created_by": "pk_test",
            "expires_at": now + timedelta(hours=lifetime_h),
            "created_at": now,
        }
        | columns
    )


def funded(merchant_id: UUID, **columns: Any) -> PayoutLinkRow:
    with transaction():
        link = payout_links.insert(new_link(merchant_id, **columns))
        payout_links.hold(link)
    return link


def claiming(link: PayoutLinkRow, address: str = ANN) -> PayoutLinkRow:
    with transaction():
        return payout_link_claims.start(link.id, address=address, memo="", check=lambda _: None)


def claimed(link: PayoutLinkRow, address: str = ANN) -> PayoutLinkRow:
    claiming(link, address)
    with transaction():
        return payout_link_claims.finish(CATALOGUE, link.id)


def advance(hours: float) -> None:
    """Move the gateway's clock."""
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (round(hours * 3600),))
