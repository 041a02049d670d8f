"""Tells who may not pay out now: rows that operators and the reconciler write, and the one question asked of them.

Asked when money is ordered to leave, when somebody approves it, and by the broadcast in the very transaction that
commits signed bytes: a freeze therefore holds from the moment that its row is there.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final, Literal, get_args
from uuid import UUID

from core.errors import PayoutConvertFrozen, PayoutFrozen
from core.payouts import ways_out
from core.payouts.ways_out import Way
from core.rates.pricing import Method
from models.db.base import column, execute, is_true, rows
from models.db.table import Table
from models.ledger import ledger

Scope = Literal["all", "network", "merchant", "conversion", "coin"]

# Scopes of which there is one; they need no name.
UNNAMED: Final[frozenset[Scope]] = frozenset({"all", "conversion"})
RECONCILER: Final = "reconciler"
SIGNER: Final = "signer"
# The signer's too, for a coin that a token lets nobody take from the hot wallet; see actors.signer.refusals.
REFUSAL: Final = "refusal"
# Stops the signing of a network, see models.spends.signing. Orders are taken meanwhile: a repeat of one that the
# database has forgotten is how the transaction that paid it finds its payout again.
RECOVERY: Final = "recovery"
LIST_MAX: Final = 1000


class Freeze(Table, table="payout_freezes"):
    """One reason for which something is frozen; each of those who freeze has a row of his own."""

    scope: Scope
    name: str
    reason: str
    frozen_by: str
    frozen_at: datetime


def check(merchant_id: UUID, network: str, currency: str, *, way: Way = ways_out.PAYOUT) -> None:
    """Refuse what would let a merchant's money leave by a network now. Raises PayoutFrozen.

    Frozen are all, the network, the coin on it or the merchant; or the merchant owes the gateway, until that is repaid:
    in any coin or in the same one, as the way out says.
    """
    if is_refused(merchant_id, network, currency, way=way):
        raise PayoutFrozen


def is_refused(merchant_id: UUID, network: str, currency: str, *, way: Way = ways_out.PAYOUT) -> bool:
    """Return whether check() would refuse."""
    if _stands(network, merchant_id, currency):
        return True
    return ledger.debt(merchant_id, currency) > 0 if way.debt == "own coin" else ledger.has_debt(merchant_id)


def check_merchant(merchant_id: UUID, currency: str) -> None:
    """Refuse, as check() does, what leaves a merchant's balance by no network. Raises PayoutFrozen."""
    check(merchant_id, "", currency)


def is_frozen(merchant_id: UUID, network: str, currency: str, *, way: Way = ways_out.PAYOUT) -> bool:
    """Return whether check() would refuse, or nothing is signed for the network."""
    return is_network_frozen(network) or is_refused(merchant_id, network, currency, way=way)


def is_network_frozen(network: str, *, but_by: str = "") -> bool:
    """Tell whether all payouts are frozen, or those on this network; but_by: whose freezes do not count."""
    return is_true(
        "SELECT 1 FROM payout_freezes WHERE (scope, name) IN (('all', ''), ('network', %s)) AND frozen_by <> %s"
        " LIMIT 1",
        (network, but_by),
    )


def check_conversion() -> None:
    """Refuse a conversion while these are frozen. Raises PayoutConvertFrozen."""
    if is_true("SELECT 1 FROM payout_freezes WHERE scope = 'conversion' LIMIT 1"):
        raise PayoutConvertFrozen


def coin(currency: str, network: str) -> str:
    """Return the name of a coin on one network, for the scope of that name."""
    return f"{currency}:{network}"


def frozen_methods(methods: Collection[Method]) -> set[Method]:
    """Return those of the methods by which nobody's payout leaves: all are frozen, the network, or the coin on it."""
    found = set(rows("SELECT scope, name FROM payout_freezes WHERE scope IN ('all', 'network', 'coin')"))
    return {m for m in methods if found & {("all", ""), ("network", m[1]), ("coin", coin(*m))}}


def frozen_coins(network: str) -> set[str]:
    """Return the coins that are frozen on a network, each by itself."""
    found = column("SELECT name FROM payout_freezes WHERE scope = 'coin'")
    return {currency for name in found for currency, _, code in [name.partition(":")] if code == network}


def _stands(network: str, merchant_id: UUID, currency: str) -> bool:
    return is_true(
        "SELECT 1 FROM payout_freezes"
        " WHERE (scope, name) IN (('all', ''), ('network', %s), ('merchant', %s), ('coin', %s))"
        " AND frozen_by <> %s LIMIT 1",
        (network, str(merchant_id), coin(currency, network), RECOVERY),
    )


def freeze(scope: Scope, name: str = "", *, reason: str, frozen_by: str) -> bool:
    """Freeze something in somebody's name; False if he has done so before, and only his reason changes.

    name: a network's code, a merchant's id or a coin() on one network; nothing for the other scopes. Raises ValueError
    for a scope with the wrong kind of name.
    """
    if (scope in UNNAMED) != (name == ""):
        raise ValueError(f"a freeze of {scope} named {name!r}")
    # Only a row that was just written has no end.
    return is_true(
        "INSERT INTO payout_freezes AS f (scope, name, reason, frozen_by) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (scope, name, frozen_by) DO UPDATE SET reason = EXCLUDED.reason RETURNING f.xmax = 0",
        (scope, name, reason, frozen_by),
    )


def unfreeze(scope: Scope, name: str = "", *, frozen_by: str | None = None) -> int:
    """Lift every freeze of that scope and name, or one's own alone; return how many there were.

    What stops the signing is lifted by whoever stopped it alone: it stands until nothing is unknown.
    """
    return execute(
        "DELETE FROM payout_freezes WHERE (scope, name) = (%s, %s)"
        " AND CASE WHEN %s::text IS NULL THEN frozen_by <> %s ELSE frozen_by = %s END",
        (scope, name, frozen_by, RECOVERY, frozen_by),
    )


def listing() -> list[Freeze]:
    """Return all that is frozen, oldest first."""
    return Freeze.read("true ORDER BY frozen_at, scope, name LIMIT %s", (LIST_MAX,))


def counts() -> dict[str, int]:
    """Return how many freezes stand in each scope, the empty ones too."""
    found: dict[str, int] = dict(rows("SELECT scope, count(*) FROM payout_freezes GROUP BY scope"))
    return {scope: found.get(scope, 0) for scope in get_args(Scope)}
