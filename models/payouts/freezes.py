"""Keeps freezes of payouts, written by operators, the reconciler and the signer, and checks orders against them.

Checked when a payout is ordered, when it is approved, and by the broadcast in the same transaction that commits signed
bytes. A freeze therefore holds from the moment of its commit.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final, Literal, get_args
from uuid import UUID

import structlog

from core.errors import PayoutConvertFrozen, PayoutFrozen
from core.payouts import ways_out
from core.payouts.ways_out import Way
from core.rates.pricing import Method
from models.db.after_commit import then
from models.db.base import execute, is_true, rows
from models.db.query import number
from models.db.table import Table
from models.ledger import ledger

log = structlog.get_logger()

Scope = Literal["all", "network", "merchant", "conversion", "coin"]

# Scopes that exist once and need no name.
UNNAMED: Final[frozenset[Scope]] = frozenset({"all", "conversion"})
RECONCILER: Final = "reconciler"
SIGNER: Final = "signer"
# The signer's too, if a token refuses every transfer from the hot wallet; see actors.signer.refusals.
REFUSAL: Final = "refusal"
# Stops the signing of a network, see models.spends.signing_stops. Orders are accepted meanwhile: if a merchant repeats
# an order that the database lost, the transaction that paid it finds its payout again.
RECOVERY: Final = "recovery"
LIST_MAX: Final = 1000


class Freeze(Table, table="payout_freezes"):
    """A freeze with its reason; each author has his own row."""

    scope: Scope
    name: str
    reason: str
    frozen_by: str
    frozen_at: datetime


def check(merchant_id: UUID, network: str, currency: str, *, way: Way = ways_out.PAYOUT) -> None:
    """Raise PayoutFrozen if a merchant's money may not leave by a network now.

    Either all payouts, the network, the coin on it or the merchant are frozen, or the merchant has a debt: in any coin
    or in the same one, depending on the way out.
    """
    if is_refused(merchant_id, network, currency, way=way):
        raise PayoutFrozen


def is_refused(merchant_id: UUID, network: str, currency: str, *, way: Way = ways_out.PAYOUT) -> bool:
    """Return True if check() would raise."""
    if _stands(network, merchant_id, currency):
        return True
    return ledger.debt(merchant_id, currency) > 0 if way.debt == "own coin" else ledger.has_debt(merchant_id)


def check_merchant(merchant_id: UUID, currency: str) -> None:
    """Raise PayoutFrozen, as check() does, for money that leaves a merchant's balance without a network."""
    check(merchant_id, "", currency)


def is_frozen(merchant_id: UUID, network: str, currency: str, *, way: Way = ways_out.PAYOUT) -> bool:
    """Return True if check() would raise, or nothing is signed for the network."""
    return is_network_frozen(network) or is_refused(merchant_id, network, currency, way=way)


def is_network_frozen(network: str, *, but_by: str = "") -> bool:
    """Return True if all payouts or those on this network are frozen. but_by: an author whose freezes do not count."""
    return is_true(
        "SELECT 1 FROM payout_freezes WHERE (scope, name) IN (('all', ''), ('network', %s)) AND frozen_by <> %s"
        " LIMIT 1",
        (network, but_by),
    )


def check_conversion() -> None:
    """Raise PayoutConvertFrozen while conversions are frozen."""
    if is_true("SELECT 1 FROM payout_freezes WHERE scope = 'conversion' LIMIT 1"):
        raise PayoutConvertFrozen


def coin(currency: str, network: str) -> str:
    """Return the name of a coin on one network, for the scope "coin"."""
    return f"{currency}:{network}"


def frozen_methods(methods: Collection[Method]) -> set[Method]:
    """Return the methods frozen for every merchant: by a freeze of all, of the network, or of the coin on it."""
    frozen = set(rows("SELECT scope, name FROM payout_freezes WHERE scope IN ('all', 'network', 'coin')"))
    return {m for m in methods if frozen & {("all", ""), ("network", m[1]), ("coin", coin(*m))}}


def frozen_coins(network: str) -> set[str]:
    """Return the coins that have their own freeze on a network."""
    names = Freeze.select(Freeze.name).where(Freeze.scope == "coin").all()
    return {currency for name in names for currency, _, code in [name.partition(":")] if code == network}


def _stands(network: str, merchant_id: UUID, currency: str) -> bool:
    return is_true(
        "SELECT 1 FROM payout_freezes"
        " WHERE (scope, name) IN (('all', ''), ('network', %s), ('merchant', %s), ('coin', %s))"
        " AND frozen_by <> %s LIMIT 1",
        (network, str(merchant_id), coin(currency, network), RECOVERY),
    )


def freeze(scope: Scope, name: str = "", *, reason: str, frozen_by: str) -> bool:
    """Write a freeze; False if its author had written it before, and only the reason changes.

    name: a network's code, a merchant's id or a coin() on one network; nothing for the other scopes. Raises ValueError
    for a scope with the wrong kind of name.
    """
    if (scope in UNNAMED) != (name == ""):
        raise ValueError(f"a freeze of {scope} named {name!r}")
    # xmax is 0 only in a row that was just inserted.
    is_new = is_true(
        "INSERT INTO payout_freezes AS f (scope, name, reason, frozen_by) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (scope, name, frozen_by) DO UPDATE SET reason = EXCLUDED.reason RETURNING f.xmax = 0",
        (scope, name, reason, frozen_by),
    )
    if is_new:
        then(lambda: log.warning("payouts.frozen", scope=scope, name=name, by=frozen_by, reason=reason))
    return is_new


def unfreeze(scope: Scope, name: str = "", *, frozen_by: str | None = None) -> int:
    """Lift every freeze of a scope and name, or only one author's; return how many there were.

    A freeze by RECOVERY, which stops the signing, is lifted only by RECOVERY: it remains until nothing is unknown.
    """
    lifted = execute(
        "DELETE FROM payout_freezes WHERE (scope, name) = (%s, %s)"
        " AND CASE WHEN %s::text IS NULL THEN frozen_by <> %s ELSE frozen_by = %s END",
        (scope, name, frozen_by, RECOVERY, frozen_by),
    )
    if lifted:
        then(lambda: log.warning("payouts.unfrozen", scope=scope, name=name, freezes=lifted))
    return lifted


def listing() -> list[Freeze]:
    """Return all freezes, oldest first."""
    return Freeze.select().order_by(Freeze.frozen_at, Freeze.scope, Freeze.name).limit(LIST_MAX).all()


def counts() -> dict[str, int]:
    """Return the number of freezes in each scope, including scopes without any."""
    by_scope = dict(Freeze.select(Freeze.scope, number()).group_by(Freeze.scope).all())
    return {scope: by_scope.get(scope, 0) for scope in get_args(Scope)}
