"""Shows the coin that the gateway owns, and gives collected fees to a merchant of its operator.

Called by `sluice fees`. The merchant pays them out as it pays out anything: by an order that a second person approves,
within the signer's limits, to an address that no list denies.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from models.db.base import one, rows, value
from models.ledger import acts, ledger
from models.ledger.ledger import AVAILABLE, CONVERSION, FEES, GATEWAY, MOVES, Account, Transfer
from models.payouts import order_checks
from models.payouts.conversion import OWN_KINDS

REFERENCE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

_OWN: Final = (
    "SELECT a.currency, a.kind, sum(CASE WHEN m.credit_account = a.id THEN m.units ELSE -m.units END)"
    f" FROM accounts a JOIN {MOVES} m ON a.id IN (m.credit_account, m.debit_account)"
    " WHERE a.holder = %s AND a.kind = ANY(%s) AND a.currency = ANY(%s) GROUP BY a.currency, a.kind"
)
# A reorg may still take back the fees of credits that mature.
_MATURING: Final = (
    "SELECT COALESCE(sum(d.fee_units + d.fee_fixed_units), 0) FROM maturing_credits m"
    " JOIN deposits d ON (d.id, d.round) = (m.deposit_id, m.round) WHERE m.currency = %s"
)


class FeesError(Exception):
    """The fees cannot be taken; the message is for the operator. Nothing was changed."""


class Own(NamedTuple):
    """The gateway's own units of a coin by kind of account, and the part of its fees that has not matured."""

    by_kind: Mapping[str, int]
    maturing_units: int

    @property
    def units(self) -> int:
        """Return all that the gateway owns of the coin; less than 0 if it owes."""
        return sum(self.by_kind.values())

    def free(self, reserve_units: int) -> int:
        """Return the fees that may be taken: matured ones, as far as the gateway owns as much besides its reserve."""
        fees_units = self.by_kind.get(FEES, 0) - self.maturing_units
        return max(0, min(fees_units, self.units - self.maturing_units - reserve_units))


def own(currencies: Collection[str]) -> dict[str, Own]:
    """Return the gateway's own units of each coin."""
    kinds: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for currency, kind, units in rows(_OWN, (GATEWAY, list(OWN_KINDS), list(currencies))):
        kinds[currency][kind] = int(units)
    return {each: Own(kinds[each], int(value(_MATURING, (each,)))) for each in currencies}


def give(
    currency: str, units: int, *, merchant_id: UUID, reference: str, reserve_units: int, by: str = "", reason: str = ""
) -> bool:
    """Give fees to a merchant's available balance, in an open transaction; return False if that was done before.

    reserve_units: the least that the gateway keeps of the coin. by: the operator, whose act is recorded with the
    reason. Raises FeesError.
    """
    _check(merchant_id, reference)
    # The debt first, as everywhere; then one after the other with conversions, which sell of the same.
    if ledger.lock_debt(merchant_id, currency):
        raise FeesError(f"merchant {merchant_id} owes {currency}: the fees would repay its debt")
    ledger.lock_account(Account(GATEWAY, CONVERSION, currency))
    booked, asked = _booked(reference), (currency, units, merchant_id)
    if booked is not None:
        if booked != asked:
            raise FeesError(f"{reference!r} was used before, for another amount or merchant")
        return False
    if units > own([currency])[currency].free(reserve_units):
        raise FeesError(f"less {currency} than that can be taken; see sluice fees show")
    ledger.post(
        f"fees:{reference}",
        [Transfer(Account(GATEWAY, FEES, currency), Account(merchant_id, AVAILABLE, currency), units)],
    )
    acts.record("fees.taken", f"{currency} {reference}", by=by, details=f"to merchant {merchant_id}", reason=reason)
    return True


def _check(merchant_id: UUID, reference: str) -> None:
    if not REFERENCE.fullmatch(reference):
        raise FeesError("a reference is 1 to 64 letters, digits, dots, hyphens and underscores")
    if not order_checks.read_terms(merchant_id).is_cosign_required:
        raise FeesError(f"payouts of merchant {merchant_id} need no second approval: sluice merchant set ID --cosign")


def _booked(reference: str) -> tuple[str, int, UUID] | None:
    """Return coin, units and merchant of an earlier taking."""
    return one(
        "SELECT t.currency, t.units, a.holder FROM ledger_transfers t JOIN accounts a ON a.id = t.credit_account"
        " WHERE t.reference = %s AND t.leg = 0",
        (f"fees:{reference}",),
    )
