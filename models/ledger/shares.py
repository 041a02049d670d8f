"""Keeps the shares that others have in a merchant's credits, while they wait in its hold.

Called in their transactions by models.deposits.crediting (credits and reversals), models.refunds.rows (refunds) and
models.outcomes.endings (refunds that fail); models.ledger.releases gives shares to their recipients. Shares are locked
behind the row of the maturing credit and before debts and balances.
Source: API reference, "Settings"; docs/decisions/splits.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from core.ids import uuid7
from core.money import PPM, mul_div_down, round_down
from models.db.base import execute, rows, rows_as, value
from models.db.revocation import VOUCHED
from models.ledger.rows import SplitTake

# Of more shares than this a refund takes nothing, the smallest first left out; the merchant's own money pays for them.
TAKEN_FROM_MAX: Final = 1_000

# The rules of the merchant of a deposit d, as JSON for rules_of(); read by the statement that credits it.
IN_FORCE: Final = (
    "COALESCE((SELECT json_agg(json_build_array(r.id, r.recipient_id, r.percent_ppm, m.split_hold_hours, r.set_by,"
    " r.cosigned_by) ORDER BY r.id) FROM split_rules r JOIN merchants m ON m.id = r.merchant_id AND m.is_split_enabled"
    f" WHERE r.merchant_id = d.merchant_id AND NOT r.is_pending AND {VOUCHED}), '[]')"
)


class Rule(NamedTuple):
    """A rule as it is in force: which part goes to whom, and how long that waits."""

    id: UUID
    recipient_id: UUID
    percent_ppm: int
    hold_hours: int
    set_by: str = ""
    cosigned_by: str = ""


class Credit(NamedTuple):
    """What is shared: one life of a merchant's deposit, and whether it still has to mature.

    step: the ledger's units in one of the coin's precision.
    """

    deposit_id: UUID
    round: int
    merchant_id: UUID
    currency: str
    step: int
    matures: bool


class Part(NamedTuple):
    """The part of a share that a refund takes."""

    share_id: UUID
    units: int


def rules_of(values: Sequence[tuple[str, str, int, int, str, str]]) -> list[Rule]:
    """Read what IN_FORCE gave."""
    return [
        Rule(UUID(rule_id), UUID(recipient_id), ppm, hours, set_by, cosigned_by)
        for rule_id, recipient_id, ppm, hours, set_by, cosigned_by in values
    ]


def put_aside(credit: Credit, rules: Sequence[Rule], units: int) -> int:
    """Write the shares that rules make of what a merchant is credited; return their sum, for its hold.

    Each is rounded down to the coin's precision, less the recipient's receipts out of earlier lives of the deposit; one
    of which nothing is left is not written.
    """
    parts = [(rule, round_down(mul_div_down(units, rule.percent_ppm, PPM), credit.step)) for rule in rules]
    if credit.round:
        parts = _less_received(credit, parts)
    made = [(uuid7(), *rule, part) for rule, part in parts if part]
    if made:
        execute(
            "INSERT INTO split_shares (deposit_id, round, merchant_id, currency, is_mature, id, rule_id, recipient_id,"
            " percent_ppm, release_at, set_by, cosigned_by, units, left_units) SELECT %s, %s, %s, %s, %s, id, rule,"
            " recipient, ppm, app_now() + make_interval(hours => hours), set_by, cosigned_by, units, units"
            " FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::integer[], %s::integer[], %s::text[], %s::text[],"
            " %s::numeric[]) AS made (id, rule, recipient, ppm, hours, set_by, cosigned_by, units)",
            (*credit[:4], not credit.matures, *([row[place] for row in made] for place in range(8))),
        )
    return sum(part for _, part in parts)


def _less_received(credit: Credit, parts: Sequence[tuple[Rule, int]]) -> list[tuple[Rule, int]]:
    """Take from shares the units that were released to their recipients before a reorg or a rewind.

    The merchant paid for those when the deposit was taken back; a second share of the same coin would cost it twice.
    """
    received = dict(
        rows(
            "SELECT recipient_id, sum(released_units) FROM split_shares WHERE deposit_id = %s AND round < %s"
            " AND merchant_id = %s AND currency = %s AND released_units > 0 GROUP BY recipient_id",
            (credit.deposit_id, credit.round, credit.merchant_id, credit.currency),
        )
    )
    left = []
    for rule, units in parts:
        covered = min(units, int(received.get(rule.recipient_id, 0)))
        received[rule.recipient_id] = received.get(rule.recipient_id, 0) - covered
        left.append((rule, units - covered))
    return left


def end(deposit_id: UUID, life: int) -> int:
    """End the shares of a deposit that a reorg took; return what of them was still in hold."""
    ended: int = value(
        "WITH ended AS (UPDATE split_shares SET is_reversed = true, reversed_units = left_units, left_units = 0"
        " WHERE deposit_id = %s AND round = %s RETURNING reversed_units)"
        " SELECT COALESCE(sum(reversed_units), 0) FROM ended",
        (deposit_id, life),
    )
    return ended


def for_refund(invoice_id: UUID, units: int, *, step: int) -> list[Part]:
    """Lock the shares that a payment's refund takes from, and return what of each. The invoice is locked.

    The refund falls on the payment's credited deposits in proportion to them; of its part of each a share bears its
    percent, rounded down to the coin's precision, and no more than is left of it.
    """
    shares = rows(
        # The sum is of the payment and not of each row: so it is added up once.
        "SELECT s.id, s.left_units, s.percent_ppm, d.amount_units, (SELECT sum(amount_units) FROM deposits WHERE"
        " owner_id = %s AND stray_reason IS NULL AND status = 'credited')"
        # The rest of a share belongs to a deposit that is credited.
        " FROM deposits d JOIN split_shares s ON s.deposit_id = d.id"
        " WHERE d.owner_id = %s AND d.stray_reason IS NULL AND s.left_units > 0"
        " ORDER BY s.left_units DESC, s.id LIMIT %s FOR UPDATE OF s",
        (invoice_id, invoice_id, TAKEN_FROM_MAX),
    )
    parts = [
        Part(share_id, min(left, round_down(mul_div_down(units * amount, ppm, PPM * total), step)))
        for share_id, left, ppm, amount, total in shares
    ]
    return [part for part in parts if part.units]


def take(payout_id: UUID, parts: Sequence[Part]) -> None:
    """Write what a refund takes of locked shares; it is there by now."""
    if parts:
        SplitTake.write_all([SplitTake(payout_id=payout_id, share_id=p.share_id, units=p.units) for p in parts])
        execute(
            "UPDATE split_shares s SET left_units = s.left_units - t.units, taken_units = s.taken_units + t.units"
            " FROM split_takes t WHERE t.payout_id = %s AND s.id = t.share_id",
            (payout_id,),
        )


class _GivenBack(NamedTuple):
    units: int
    is_reversed: bool


def give_back(payout_id: UUID) -> int:
    """Undo take() for a refund that failed or was cancelled; return the units that go back into hold.

    If a reorg took a share's deposit meanwhile, the part taken from it is the merchant's, who paid for that deposit.
    """
    shares = rows_as(
        _GivenBack,
        "UPDATE split_shares s SET taken_units = s.taken_units - t.units,"
        " left_units = s.left_units + CASE WHEN s.is_reversed THEN 0 ELSE t.units END,"
        " reversed_units = s.reversed_units + CASE WHEN s.is_reversed THEN t.units ELSE 0 END"
        " FROM split_takes t WHERE t.payout_id = %s AND s.id = t.share_id RETURNING t.units, s.is_reversed",
        (payout_id,),
    )
    return sum(part.units for part in shares if not part.is_reversed)
