"""Payouts in every state, and changes by hand that break them. Used by the tests of the invariants."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from core.ids import uuid7
from core.payouts.deny_list import DenyList
from models.db import scales
from models.db.base import transaction
from models.deposits import crediting
from models.merchants import transfers
from models.outcomes import decisions
from models.payout_links import rows as payout_links
from models.payouts import conversion
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from tests.models.builders import CATALOGUE, USDT, Chain, merchant
from tests.models.invoices.builders import invoice, paid
from tests.models.payout_links.builders import claimed
from tests.models.payout_links.builders import funded as cheque
from tests.models.payouts.held import DESTINATION, payout, require_cosign, taken
from tests.models.spends import by_hand
from tests.models.treasury.builders import HOT, spend

# At least one change for each invariant, each in several variants.
PAYOUT_CORRUPTIONS: Final[dict[str, list[str]]] = {
    "payout_held_equals_open_orders": [
        "UPDATE balances b SET units = units - 1 FROM accounts a WHERE a.id = b.account_id AND a.kind = 'payout_held'",
        "UPDATE payouts SET held_units = held_units + 1, fee_units = fee_units + 1 WHERE status = 'pending'",
        "UPDATE payouts SET status = 'cancelled' WHERE status = 'awaiting_cosign'",
        "UPDATE payouts SET currency = 'DAI' WHERE status = 'sent'",
        "UPDATE payout_links SET status = 'expired' WHERE status = 'funded'",
        "DELETE FROM payout_links",
    ],
    "payouts_hold_their_money": [
        "DELETE FROM ledger_transfers WHERE reference LIKE 'payout:%:hold'",
        "UPDATE payouts SET hold_reference = 'x' WHERE status = 'approved' AND kind = 'payout'",
        "UPDATE payouts SET merchant_id = gen_random_uuid()",
        "UPDATE payouts SET held_units = held_units - 1, to_units = to_units - 1 WHERE status = 'confirmed'",
    ],
    "payouts_are_booked_as_they_ended": [
        "DELETE FROM ledger_transfers WHERE reference LIKE 'payout:%:leave'",
        "DELETE FROM ledger_transfers WHERE reference LIKE 'payout:%:return'",
        "UPDATE ledger_transfers SET units = units - 1 WHERE reference LIKE 'payout:%:leave' AND leg = 1",
        "UPDATE payouts SET status = 'sent' WHERE status = 'confirmed'",
        "UPDATE payouts SET status = 'confirmed' WHERE status = 'failed'",
        "UPDATE payouts SET status = 'approved' WHERE status = 'cancelled'",
        "UPDATE payouts SET status = 'failed' WHERE status = 'sent'",
    ],
    "failed_payouts_keep_what_they_say": [
        "UPDATE payouts SET kept_units = 1 WHERE status = 'failed'",
        "UPDATE payouts SET kept_units = 1 WHERE status = 'sent'",
    ],
    "conversions_are_booked": [
        "UPDATE payouts SET from_units = from_units + 1 WHERE from_units IS NOT NULL",
        "UPDATE payouts SET from_currency = 'DAI' WHERE from_currency IS NOT NULL",
        "UPDATE payouts SET from_currency = NULL, from_units = NULL, rate = NULL WHERE from_currency IS NOT NULL",
        "UPDATE payouts SET from_currency = 'DAI', from_units = 1, rate = '1' WHERE status = 'pending'",
        "DELETE FROM ledger_transfers WHERE reference LIKE 'payout:%:convert'",
    ],
    "approvers_are_others": [
        "UPDATE payout_approvals SET principal = 'pk_creator' WHERE principal = 'pk_second'",
        "UPDATE payouts SET created_by = 'pk_second' WHERE status = 'sent'",
        "DELETE FROM payout_approvals",
        "UPDATE payouts SET status = 'approved' WHERE status = 'pending'",
    ],
    "payouts_follow_their_spends": [
        "UPDATE spend_outputs SET state = 'dead' WHERE state = 'open' AND payout_id IS NOT NULL",
        "UPDATE spend_outputs SET state = 'open' WHERE state = 'confirmed' AND payout_id IS NOT NULL",
        "UPDATE spend_outputs SET state = 'open' WHERE state = 'failed' AND payout_id IS NOT NULL",
        "UPDATE payouts SET status = 'approved' WHERE status = 'sent'",
        "UPDATE payouts SET status = 'broadcasting' WHERE status = 'pending'",
        "DELETE FROM spend_outputs WHERE state = 'confirmed' AND payout_id IS NOT NULL",
    ],
    "spends_do_what_payouts_say": [
        "UPDATE spend_outputs SET token_units = token_units + 1 WHERE payout_id IS NOT NULL",
        "UPDATE spends SET decimals = decimals + 2 WHERE purpose = 'payout'",
        "UPDATE spend_outputs SET recipient = '0xattacker' WHERE payout_id IS NOT NULL",
        "UPDATE payouts SET network = 'bsc' WHERE status = 'sent'",
        "UPDATE payouts SET address = '0xattacker' WHERE status = 'confirmed'",
    ],
    "spends_are_their_outputs": [
        "UPDATE spends SET state = 'dead' WHERE state = 'sent' AND purpose = 'payout'",
        "UPDATE spends SET state = 'mined' WHERE state = 'confirmed' AND purpose = 'payout'",
        "UPDATE spends SET state = 'sent' WHERE state = 'failed' AND purpose = 'payout'",
        "DELETE FROM spend_outputs WHERE state = 'confirmed' AND payout_id IS NOT NULL",
        "UPDATE spends SET token_units = token_units + 1 WHERE purpose = 'payout'",
        "UPDATE spends SET lost_units = 1 WHERE purpose = 'payout'",
        "UPDATE spends SET charged_units = 1 WHERE purpose = 'payout'",
        "UPDATE spends SET purpose = 'gas' WHERE purpose = 'payout'",
        "UPDATE spend_outputs SET payout_id = NULL",
        "UPDATE spend_outputs SET place = 1",
        "UPDATE spends SET effect = 'exact' WHERE purpose = 'payout'",
        "UPDATE spend_outputs SET effect = 'none' WHERE payout_id IS NOT NULL",
        "UPDATE spends SET effect = 'exact'; UPDATE spend_outputs SET effect = 'none'",
        "UPDATE spends SET effect = NULL WHERE state = 'confirmed' AND purpose = 'payout'",
        "UPDATE spend_outputs SET state = 'failed' WHERE state = 'confirmed' AND payout_id IS NOT NULL",
        "UPDATE spend_outputs SET state = 'confirmed' WHERE state = 'failed' AND payout_id IS NOT NULL",
        "INSERT INTO spend_outputs (spend_id, place, payout_id, recipient, token_units, state) SELECT spend_id, 1,"
        " NULL, recipient, 0, 'open' FROM spend_outputs WHERE state = 'confirmed'",
    ],
    "movements_are_their_spends": [
        "INSERT INTO spend_movements SELECT id, network, sender, currency, decimals, -1, 1 FROM spends"
        " WHERE mined_height IS NULL AND purpose = 'payout'",
        "UPDATE spend_movements SET units = units + 1 WHERE currency = 'USDT' AND units < 0",
        "UPDATE spend_movements SET units = units + 1 WHERE currency = 'USDT' AND units > 0",
        "UPDATE spend_movements SET units = units + 6 WHERE currency = 'ETH'",
        "UPDATE spend_movements SET network = 'bsc'",
        "UPDATE spend_movements SET height = height + 1",
        "DELETE FROM spend_movements WHERE units < 0",
        "DELETE FROM spend_movements WHERE units > 0 AND currency = 'USDT'",
    ],
    "cheques_hold_their_money": [
        "UPDATE payout_links SET amount_units = amount_units + 1",
        "UPDATE payout_links SET status = 'cancelled' WHERE status = 'funded'",
        "UPDATE payout_links SET status = 'funded' WHERE status = 'cancelled'",
        "UPDATE payout_links SET status = 'claiming', claiming_since = app_now(), payout_id = NULL"
        " WHERE status = 'claimed'",
        "UPDATE payouts SET address = '0xattacker' WHERE kind = 'cheque'",
        "UPDATE payouts SET hold_reference = 'x' WHERE kind = 'cheque'",
        "DELETE FROM ledger_transfers WHERE reference LIKE 'payout_link:%:return'",
    ],
    "personal_equals_transfers": [
        "UPDATE personal_transfers SET units = units + 1",
        "UPDATE personal_transfers SET owner_id = gen_random_uuid()",
        "UPDATE personal_transfers SET merchant_id = gen_random_uuid()",
        "DELETE FROM personal_transfers",
        "DELETE FROM ledger_transfers WHERE reference LIKE 'transfer:%'",
    ],
}


def pay_out(chain: Chain) -> UUID:
    """Let a merchant pay out in every way, to every end; return its id. The gateway has ETH of its own."""
    scales.keep(CATALOGUE.ledger_scales())
    merchant_id = _merchant(chain)
    payout(merchant_id)
    require_cosign(merchant_id)
    payout(merchant_id, status="awaiting_cosign", is_approval_required=False)
    approved, sent, confirmed, failed = (_approved(merchant_id) for _ in range(4))
    del approved
    taken(sent, "broadcasting", "approved", "broadcasting", "sent")
    taken(confirmed, "broadcasting", "sent", "confirmed")
    taken(failed, "broadcasting", "sent", "failed")
    taken(payout(merchant_id), "cancelled")
    taken(payout(merchant_id, status="approved", is_approval_required=False), "failed")
    _converted(merchant_id)
    _cheques(merchant_id)
    _included()
    with transaction():
        transfers.transfer(merchant_id, None, "USDT", USDT, created_by="pk_creator")
    return merchant_id


def _included() -> None:
    """Put confirmed spends into a block, and with them gas and a sweep between our own addresses."""
    by_hand.change(
        "mined_txid = '0x7', mined_height = 7, mined_hash = '0xb', is_success = true, effect = 'exact',"
        " chain_fee_units = 5",
        "state = 'confirmed'",
    )
    spend(recipient="0xdeposit", token_units=9, mined=(7, "0xb"), effect="exact")
    token = CATALOGUE.pairs["USDT", "ethereum"].contract
    spend(purpose="sweep", sender="0xdeposit", recipient=HOT, currency="USDT", contract=token, token_units=3,
          mined=(7, "0xb"), effect="exact")  # fmt: skip


def _merchant(chain: Chain) -> UUID:
    merchant_id = merchant(fee_ppm=0, fee_fixed_usd_cents=0)
    paid(chain, invoice(merchant_id, fee_ppm=0, fee_fixed_usd_cents=0, fee_fixed_units=0), 500 * USDT)
    chain.mature()
    crediting.release_matured(chain.network, limit=10)
    return merchant_id


def _approved(merchant_id: UUID) -> payouts.PayoutRow:
    order = payout(merchant_id)
    for principal in ("pk_second", "pk_third"):
        with transaction():
            order = decisions.approve(CATALOGUE, DenyList(None), order, principal=principal)
    return order


def _cheques(merchant_id: UUID) -> None:
    """Leave a cheque that waits, one that was claimed and one that was cancelled."""
    cheque(merchant_id)
    claimed(cheque(merchant_id))
    unwanted = cheque(merchant_id)
    with transaction():
        payout_links.cancel(merchant_id, unwanted.id)


def _converted(merchant_id: UUID) -> None:
    payout_id = uuid7()
    new: PayoutRow = payouts.PayoutRow(
        id=payout_id,
        merchant_id=merchant_id,
        order_id="converted",
        kind="payout",
        currency="ETH",
        network="ethereum",
        address=DESTINATION,
        amount_units=10**15,
        fee_units=10**12,
        to_units=10**15,
        is_fee_on_top=True,
        status="awaiting_cosign",
        created_by="pk_creator",
        from_currency="USDT",
        from_units=3 * USDT,
        rate="0.00033",
    )
    with transaction():
        conversion.book(new, from_currency="USDT", from_units=3 * USDT)
        payouts.insert(CATALOGUE, new)
