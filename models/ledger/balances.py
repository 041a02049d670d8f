"""What a merchant has: the read behind POST /v1/balance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.db.base import one
from models.ledger import ledger

if TYPE_CHECKING:
    from uuid import UUID

Holdings = dict[str, dict[str, int]]


def read(merchant_id: UUID) -> tuple[Holdings, Holdings]:
    """Return the balances of a merchant and the personal ones of its owner: {currency: {kind: units}}."""
    owner = one("SELECT owner_id FROM merchants WHERE id = %s", (merchant_id,))
    return ledger.holdings(merchant_id), ledger.holdings(owner[0]) if owner else {}
