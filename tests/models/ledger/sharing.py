"""Rules and shares for tests that need a database: made as by the API, released as by the scheduled actor."""

from __future__ import annotations

from uuid import UUID

from actors.merchants.shares import release_splits
from core.merchants.terms_rules import split_ppm
from models.db.base import execute, rows, transaction
from models.deposits import crediting
from models.ledger.ledger import HOLD
from models.merchants import rows as merchants
from models.merchants import splits
from models.merchants.splits import SplitRuleRow
from tests.models.builders import Chain, assert_sound, merchant
from tests.models.ledger.figures import balances_of

HOLD_HOURS = 72


def share_with(shop: UUID, percent: float, recipient: UUID | None = None) -> UUID:
    """Let a merchant share with another one, by default a new one; return the recipient."""
    recipient_id = recipient or merchant()
    add_rule(shop, recipient_id, percent)
    return recipient_id


def add_rule(shop: UUID, recipient_id: UUID, percent: float, *, by: str = "") -> SplitRuleRow:
    with transaction():
        return splits.add(shop, recipient_id, percent_ppm=split_ppm(percent), title="", principal=by).rule


def cosigned_rule(shop: UUID, recipient_id: UUID, percent: float, *, by: str, cosigner: str) -> SplitRuleRow:
    """Let a merchant that requires co-signing share with another one, as two keys want."""
    merchants.set_cosign(shop, is_required=True)
    add_rule(shop, recipient_id, percent, by=by)
    rule = add_rule(shop, recipient_id, percent, by=cosigner)
    assert (rule.is_pending, rule.cosigned_by) == (False, cosigner)
    return rule


def hold_for(shop: UUID, hours: int = HOLD_HOURS) -> None:
    """Let a merchant's shares of future credits wait for a number of hours."""
    with transaction():
        splits.set_config(shop, enabled=None, hold_hours=hours)


def mature(chain: Chain) -> None:
    """Bury all deposits to maturity and release their credits."""
    chain.mature()
    crediting.release_matured(chain.network, limit=1_000)
    assert_sound()


def hours_pass(hours: int = HOLD_HOURS) -> None:
    """Let the hold of every share end a number of hours sooner."""
    execute("UPDATE split_shares SET release_at = release_at - make_interval(hours => %s)", (hours,))


def release() -> None:
    """Release due shares to their recipients and check the invariants."""
    release_splits()
    assert_sound()


def in_hold(shop: UUID) -> int:
    return balances_of(shop).get(HOLD, 0)


def places(shop: UUID) -> list[tuple[int, int, int, int]]:
    """Return a merchant's shares, oldest first: (left, taken, released, reversed)."""
    return rows(
        "SELECT left_units, taken_units, released_units, reversed_units FROM split_shares WHERE merchant_id = %s"
        " ORDER BY id",
        (shop,),
    )
