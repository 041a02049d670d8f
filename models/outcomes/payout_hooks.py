"""Does to a payout what the fate of its spend means. Registers itself; imported by actors.signer.broadcast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.catalogue.catalogue import Catalogue
from core.payouts.states import PayoutStatus
from models.db.base import execute
from models.ledger import debts, ledger
from models.ledger.ledger import EQUITY, GATEWAY, Account
from models.outcomes import endings
from models.payouts import freezes, order_checks
from models.payouts import queue as payout_queue
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.spends import bookings, limit_counters, outputs
from models.spends import rows as spends
from models.spends.hooks import Hooks, register
from models.spends.outputs import Effect, OutputRow
from models.spends.rows import SpendRow

FAILED: Final = "The transaction was included and had no effect."
UNCLEAR: Final = "the transaction moved something else than was asked for; sluice payouts settle"
UNDELIVERED: Final = "it has left the hot wallet, and the chain has not delivered it yet"
# Why a payout does not end whose transaction is in a block, by its effect.
_REASONS: Final[Mapping[Effect | None, str]] = {"other": UNCLEAR, None: UNDELIVERED}


def _lock(output: OutputRow, *statuses: PayoutStatus) -> PayoutRow | None:
    # An adopted spend may also have outputs without a payout.
    payout = None if output.payout_id is None else payouts.lock(output.payout_id)
    return payout if payout is not None and payout.status in statuses else None


def _sent(catalogue: Catalogue, spend: SpendRow) -> None:
    for output in spend.outputs:
        payout = _lock(output, "broadcasting")
        if payout is not None:
            payouts.move(catalogue, payout, "sent", txid=spend.txid)


def _show_newest(_catalogue: Catalogue, spend: SpendRow) -> None:
    for output in spend.outputs:
        payout = _lock(output, "broadcasting", "sent")
        if payout is not None:
            payouts.note_inclusion(payout.id, txid=spend.txid, block_height=None)
            _explain(payout, "")


def _mined(catalogue: Catalogue, spend: SpendRow) -> None:
    for output in spend.outputs:
        payout = _lock(output, "broadcasting", "sent", "confirmed")
        if payout is None:
            continue
        if payout.status == "broadcasting":
            # The signer sent it and died before it could record that.
            payouts.move(catalogue, payout, "sent", txid=spend.mined_txid)
        payouts.note_inclusion(payout.id, txid=spend.mined_txid or spend.txid, block_height=spend.mined_height)
        _explain(payout, _REASONS.get(output.effect, ""))


def _explain(payout: PayoutRow, reason: str) -> None:
    """Note why a locked payout does not end, where it does not say so."""
    if payout.wait_reason != reason:
        payout_queue.explain(payout.id, reason=reason)


def _confirmed(catalogue: Catalogue, spend: SpendRow, output: OutputRow) -> None:
    if output.payout_id is not None:
        endings.end(catalogue, output.payout_id, "confirmed", txid=spend.mined_txid, block_height=spend.mined_height)


def _failed(catalogue: Catalogue, spend: SpendRow, output: OutputRow) -> None:
    """End the payout as failed, less its share of the gas; the signer's limits count its amount no longer.

    If the token refused our own wallet and not the recipient, the payout is signed again, and the gateway bears the
    gas.
    """
    if output.payout_id is None:
        return
    limit_counters.give_back(spend.id, output.place)
    if spend.is_own_refusal:
        _take_up(catalogue, output)
        spends.give_up(output)
        return
    payout = payout_queue.read(output.payout_id)
    fee_units = bookings.fee_share(catalogue, spend, output)
    endings.end(
        catalogue,
        output.payout_id,
        "failed",
        kept_units=0 if payout is None else order_checks.kept_units(catalogue, payout, fee_units),
        txid=spend.mined_txid,
        block_height=spend.mined_height,
        error=output.problem or FAILED,
    )


def _failed_anew(_catalogue: Catalogue, spend: SpendRow, output: OutputRow) -> None:
    """Charge the merchant for a failed payout that was paid after all; return the charge if in the end it was not.

    The amount has been booked as the gateway's loss by then. If the effect is "other", it remains one, and an operator
    has to look.
    """
    if output.payout_id is None:
        return
    payout = payout_queue.read(output.payout_id)
    if payout is None:
        raise LookupError(f"spend {spend.id} pays no payout that exists")
    charged = payout.to_units if output.effect == "exact" else 0
    units = charged - output.charged_units
    loss = Account(GATEWAY, EQUITY, payout.currency)
    if units > 0:
        ledger.lock_debt(payout.merchant_id, payout.currency)
        legs = debts.charge(payout.merchant_id, payout.currency, units, into=loss)
    else:
        legs = debts.give(payout.merchant_id, payout.currency, -units, out_of=loss)
    ledger.post(f"payout:{payout.id}:anew:{spend.reopened}", legs)
    outputs.note_charged(output, charged)


def _dead(catalogue: Catalogue, spend: SpendRow, output: OutputRow) -> None:
    """Return the payout to the signer: none of its signed bytes can ever be included."""
    limit_counters.give_back(spend.id, output.place)
    _take_up(catalogue, output)


def _take_up(catalogue: Catalogue, output: OutputRow) -> None:
    """Make a payout due for signing again, because its transaction moved nothing and never will."""
    payout = _lock(output, "broadcasting", "sent")
    if payout is None:
        return
    payouts.note_inclusion(payout.id, txid="", block_height=None)
    payouts.move(catalogue, payout, "approved", txid="")
    execute("UPDATE payouts SET due_at = app_now() WHERE id = %s", (payout.id,))


def _may_fail(spend: SpendRow) -> bool:
    """Return False while all payouts or the network's are frozen: what the scan sees then may be wrong."""
    return not freezes.is_network_frozen(spend.network)


def _may_send(spend: SpendRow) -> bool:
    """While all payouts are frozen, or the network's, not even bytes that are signed go out.

    A freeze of one merchant comes too late for those: held back, they would hold up all others behind their slot.
    """
    return not freezes.is_network_frozen(spend.network)


register(
    "payout",
    Hooks(
        on_sent=_sent,
        on_bumped=_show_newest,
        on_mined=_mined,
        on_taken_out=_show_newest,
        on_confirmed=_confirmed,
        on_failed=_failed,
        on_dead=_dead,
        on_failed_anew=_failed_anew,
        may_fail=_may_fail,
        is_settled_by_hand=True,
        may_send=_may_send,
    ),
)


def follow(catalogue: Catalogue, spend: SpendRow, output: OutputRow) -> None:
    """Take a payout on its way as far as the spend is that was found to pay it."""
    _sent(catalogue, spend)
    if spend.mined_txid is not None:
        _mined(catalogue, spend)
    if output.state == "confirmed":
        _confirmed(catalogue, spend, output)


def begin(catalogue: Catalogue, payout: PayoutRow) -> bool:
    """Note, in the transaction that signs for it, that an approved and locked payout is on its way."""
    return payouts.move(catalogue, payout, "broadcasting") is not None
