"""Makes merchants with money in sound books, and payouts that hold some of it, in any status."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from core.ids import uuid7
from core.payouts.states import FINAL_PAYOUTS, PayoutStatus
from models.db.base import column, execute, one, transaction, value
from models.deposits import crediting
from models.outcomes import endings
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.wallets import settlement as wallet_settlement
from tests.models.builders import CATALOGUE, USDT, Chain, endpoint, merchant
from tests.models.spends import by_hand
from tests.models.wallets.builders import wallet

CREATOR: Final = "pk_creator"
DESTINATION: Final = "0x52908400098527886e0f7030069857d2e4169ee7"

HOT_WALLET: Final = "0x" + "a0" * 20


def funded(units: int = 100 * USDT, *, owner: UUID | None = None, chain: Chain | None = None) -> UUID:
    """Return a merchant without fees that has a number of USDT available."""
    merchant_id = merchant(fee_ppm=0, fee_fixed_usd_cents=0, owner=owner)
    endpoint(merchant_id)
    scan = chain or Chain()
    mine = wallet(merchant_id, fee_ppm=0)
    scan.pay_and_confirm(mine, units)
    wallet_settlement.settle(CATALOGUE, mine.id)
    scan.mature()
    crediting.release_matured(CATALOGUE.networks["ethereum"], limit=10)
    return merchant_id


def payout(merchant_id: UUID, *, fee: int = USDT, to: int = 10 * USDT, **columns: Any) -> PayoutRow:
    """Order a payout of 10 USDT on ethereum with a fee of 1 USDT on top, pending by default."""
    payout_id = uuid7()
    new = PayoutRow(
        **{
            "id": payout_id,
            "merchant_id": merchant_id,
            "order_id": f"payout-{payout_id}",
            "kind": "payout",
            "currency": "USDT",
            "network": "ethereum",
            "address": DESTINATION,
            "amount_units": to,
            "fee_units": fee,
            "to_units": to,
            "is_fee_on_top": True,
            "status": "pending",
            "is_approval_required": True,
            "created_by": CREATOR,
        }
        | columns
    )
    with transaction():
        return payouts.insert(CATALOGUE, new)


def reread(of: PayoutRow) -> PayoutRow:
    """Return a payout as it is now."""
    stored = payouts.find(of.merchant_id, of.id)
    assert stored is not None
    return stored


def require_cosign(merchant_id: UUID, *, is_required: bool = True) -> None:
    execute("UPDATE merchants SET is_cosign_required = %s WHERE id = %s", (is_required, merchant_id))


def approvers(of: PayoutRow) -> set[str]:
    return set(column("SELECT principal FROM payout_approvals WHERE payout_id = %s", (of.id,)))


def webhook_events(of: PayoutRow) -> list[str]:
    """Return a payout's events in the order in which they were written."""
    return column("SELECT event FROM webhook_deliveries WHERE object_id = %s ORDER BY id", (of.id,))


def owner_of(merchant_id: UUID) -> UUID:
    row = one("SELECT owner_id FROM merchants WHERE id = %s", (merchant_id,))
    assert row is not None
    owner_id: UUID = row[0]
    return owner_id


def as_signed(of: PayoutRow) -> None:
    """Write the spends that the signer would have left of a payout in its present status."""
    now = reread(of)
    state = {"broadcasting": "signed", "sent": "sent", "confirmed": "confirmed"}.get(now.status)
    ended = {"failed": "failed", "approved": "dead"}.get(now.status)
    if state is None:
        by_hand.change(
            "state = %s, ended_at = app_now(), settled_at = app_now()", by_hand.OF_PAYOUT, (ended or "dead", of.id)
        )
    elif not by_hand.change("state = %s", by_hand.OF_PAYOUT, (state, of.id)):
        _sign(now, state)


def _sign(payout_: PayoutRow, state: str) -> None:
    pair = CATALOGUE.pairs[payout_.currency, payout_.network]
    by_hand.write(
        network=payout_.network, purpose="payout", payout_id=payout_.id, sender=HOT_WALLET, recipient=payout_.address,
        currency=payout_.currency, contract=pair.contract, decimals=pair.decimals,
        token_units=pair.from_ledger(payout_.to_units, CATALOGUE.scale(payout_.currency)),
        slot=value("SELECT 1 + COALESCE(max(slot), 1000) FROM spends"), state=state, attempts=1,
    )  # fmt: skip


def taken(of: PayoutRow, *path: PayoutStatus) -> PayoutRow:
    """Take a payout through statuses as its deciders and the signer would, with its spends."""
    for status in path:
        with transaction():
            if status in FINAL_PAYOUTS:
                endings.end(CATALOGUE, of.id, status)  # type: ignore[arg-type]
            else:
                before = payouts.lock(of.id)
                assert before is not None
                assert payouts.move(CATALOGUE, before, status)
        as_signed(of)
    return reread(of)
