"""Selects the payouts that the broadcast takes up, and checks them before they are signed.

Called by actors.signer.broadcast alone; the decisions are made under the payout's row lock, in its transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Network
from core.catalogue.families import Traits
from core.payouts.states import WaitingFor
from models.db import fair
from models.db.base import app_now, column, execute, is_true, rows, value
from models.db.clock import FUTURE_MAX_S
from models.ledger import maturity
from models.ledger.ledger import balance
from models.payouts import waiting
from models.payouts.rows import PayoutRow, SanctionVerdict

# Why a payout waits that a sweep may help: it does not come before those.
SHORT_OF_COIN: Final = "the hot wallet holds too little"
COINS_TOO_SMALL: Final = "the hot wallet's coins are too small for today's network fee"
FEE_RISEN: Final = "the network's fee has risen above what was charged for it"
# Why a refund waits whose deposits, or the shares that pay it, a reorg could still take.
IMMATURE: Final = "what it sends back is not deep enough in the chain yet"
# Neither a sweep nor a join waits for payouts that wait for one of these.
_PASSED_BY: Final = (SHORT_OF_COIN, COINS_TOO_SMALL, FEE_RISEN)
# Why a payout waits whose merchant may have spent its balance by another network, in what the database has lost.
DOUBTED: Final = "another network of this coin is not signed for: the balance may lack what left there"
# After refusals for this long a payout fails: nothing was ever signed for it.
REFUSED_FOR_S: Final = 1_800
REFUSED_PAUSE_MIN_S: Final = 5
REFUSED_PAUSE_MAX_S: Final = 300

# A refund out of suspense may leave once its deposits are mature, and so here for good. Other money was mature when it
# left suspense, except others' shares, from which a refund may be paid before their credit is mature. Deposits that a
# reorg took do not delay it: such a refund is cancelled when the broadcast checks it.
_HERE: Final = (
    "(p.kind <> 'refund' OR NOT EXISTS (SELECT 1 FROM split_takes t JOIN split_shares s ON s.id = t.share_id"
    " WHERE t.payout_id = p.id AND NOT s.is_mature AND NOT s.is_reversed)) AND "
    "(p.funded_from = 'available' OR NOT EXISTS (SELECT 1 FROM deposits d LEFT JOIN chain_cursors c"
    " ON c.network = d.network WHERE d.refund_id = p.id AND d.status <> 'reversed'"
    f"   AND (d.status = 'pending' OR {maturity.condition('d')} IS NOT TRUE)))"
)

# A turn of each merchant before the second of any; within a merchant urgent ones first, then the oldest.
_DUE: Final = fair.fair(
    "payouts p",
    "p.network = %(network)s AND p.status = 'approved'",
    due=f"p.due_at <= (SELECT app_now()) AND p.wait_reason <> ALL (%(but_for)s) AND {_HERE}"
    " AND p.currency <> ALL (%(doubted)s)"
    " AND p.currency || ':' || p.network <> ALL (ARRAY(SELECT f.name FROM payout_freezes f WHERE f.scope = 'coin'))",
    order="p.priority, p.due_at, p.id",
    since="due_at",
    whose="NOT EXISTS (SELECT 1 FROM payout_freezes f WHERE (f.scope, f.name) IN"
    " (('all', ''), ('network', %(network)s), ('merchant', walk.merchant_id::text)))",
)


def due(network: Network, *, limit: int, doubted: Collection[str] = ()) -> list[UUID]:
    """Return the approved payouts to take up now, in the order to do so.

    The frozen ones are left out, and refunds of what is not mature and final yet. doubted: coins whose balances may
    show what has left by another network.
    """
    return _due(network, limit=limit, doubted=doubted)


def is_any_due(network: Network) -> bool:
    """Return whether a payout is due that waits for its turn, and for no coin that is still to be gathered."""
    return bool(_due(network, limit=1, but_for=_PASSED_BY))


def _due(network: Network, *, limit: int, doubted: Collection[str] = (), but_for: Collection[str] = ()) -> list[UUID]:
    wanted = {"network": network.code, "limit": limit, "but_for": list(but_for), "doubted": list(doubted)}
    return column(_DUE, maturity.bounds(network) | wanted)


def is_here(network: Network, payout_id: UUID) -> bool:
    """Return whether what an approved payout sends is here for good, as far as it came for that very payout."""
    return is_true(
        f"SELECT 1 FROM payouts p WHERE p.id = %(payout)s AND {_HERE}", maturity.bounds(network) | {"payout": payout_id}
    )


def read(payout_id: UUID) -> PayoutRow | None:
    """Return a payout of any merchant: the signer works for all."""
    return PayoutRow.first("p.id = %s", (payout_id,))


def gathered(payout_ids: Sequence[UUID], traits: Traits) -> list[list[UUID]]:
    """Return due payouts in the batches that may leave now, each of one coin and in one spend, in their order.

    Payouts that do not fill a spend wait for others: until none came for gather_s, or the first has waited for
    gather_max_s. A payout comes when it is approved, or when its obstacle is over.
    """
    by_coin: defaultdict[str, list[PayoutRow]] = defaultdict(list)
    by_id = {payout.id: payout for payout in PayoutRow.read("p.id = ANY (%s)", (list(payout_ids),))}
    for payout in (by_id[payout_id] for payout_id in payout_ids if payout_id in by_id):
        by_coin[payout.currency].append(payout)
    size = traits.outputs_max
    batches = [payouts[at : at + size] for payouts in by_coin.values() for at in range(0, len(payouts), size)]
    now = app_now()
    return [[payout.id for payout in batch] for batch in batches if _may_leave(batch, traits, now)]


def _may_leave(batch: Sequence[PayoutRow], traits: Traits, now: datetime) -> bool:
    came = [max(payout.due_at, payout.updated_at) for payout in batch]
    is_quiet = now - max(came) >= timedelta(seconds=traits.gather_s)
    return len(batch) >= traits.outputs_max or is_quiet or now - min(came) >= timedelta(seconds=traits.gather_max_s)


def is_held(payout: PayoutRow) -> bool:
    """Return whether the ledger still holds a payout's money, all of it, for this merchant, under its reference."""
    units: int = value(
        "SELECT COALESCE(sum(t.units), 0) FROM ledger_transfers t JOIN accounts a ON a.id = t.credit_account"
        " WHERE t.reference = %s AND (a.holder, a.kind, a.currency, a.network) = (%s, %s, %s, '')",
        (payout.hold_reference, *payout.held_account[:3]),
    )
    is_gone = is_true(
        "SELECT 1 FROM ledger_transfers WHERE reference IN (%s, %s, %s) LIMIT 1",
        (
            f"payout:{payout.id}:leave", f"payout:{payout.id}:return",
            # A payout link's, which is given back under the link's name.
            payout.hold_reference.removesuffix(":hold") + ":return",
        ),
    )  # fmt: skip
    return units >= payout.held_units and not is_gone and balance(payout.held_account) >= payout.held_units


def take(payout_id: UUID) -> None:
    """Forget what kept a payout back; it is being signed in the caller's transaction."""
    execute("UPDATE payouts SET refused_since = NULL, wait_reason = '' WHERE id = %s", (payout_id,))


def postpone(payout_id: UUID, *, seconds: int, reason: str, waiting_for: WaitingFor) -> None:
    """Take an approved payout up again after so long, for a reason that is not the payout's."""
    waiting.write(
        "id = %s AND status = 'approved'", (payout_id,), reason=reason, waiting_for=waiting_for, pause_s=seconds
    )


def release(payout_id: UUID) -> None:
    """Take an approved payout up again now."""
    execute(
        "UPDATE payouts SET due_at = app_now(), wait_reason = '', wait_kind = '' WHERE id = %s AND status = 'approved'",
        (payout_id,),
    )


def keep(payout_id: UUID, *, seconds: int, reason: str) -> None:
    """Postpone an approved payout that is refused for no fault of its recipient: refusals until now do not count."""
    execute("UPDATE payouts SET refused_since = NULL WHERE id = %s AND status = 'approved'", (payout_id,))
    postpone(payout_id, seconds=seconds, reason=reason, waiting_for="freeze")


def explain_doubted(network: str, coins: Collection[str]) -> None:
    """Let approved payouts say that balances of their coins may show what has left by another network."""
    waiting.write(
        "network = %s AND status = 'approved' AND currency = ANY(%s)",
        (network, list(coins)),
        reason=DOUBTED,
        waiting_for="network",
    )


def explain_immature(network: Network) -> None:
    """Let approved refunds say that what they send back could still be taken by a reorg."""
    execute(
        "UPDATE payouts p SET wait_reason = %(reason)s, wait_kind = 'network' WHERE p.network = %(network)s"
        " AND p.status = 'approved' AND (p.kind = 'refund' OR p.funded_from = 'suspense')"
        f" AND (p.wait_reason, p.wait_kind) <> (%(reason)s, 'network') AND NOT ({_HERE})",
        maturity.bounds(network) | {"network": network.code, "reason": IMMATURE},
    )


def explain(payout_id: UUID, *, reason: str, waiting_for: WaitingFor = "network") -> None:
    """Note why a payout that was sent does not end; '' if it may again."""
    waiting.write("id = %s", (payout_id,), reason=reason, waiting_for=waiting_for)


def refuse(payout_id: UUID, *, reason: str) -> bool:
    """Note that a payout is refused, and take it up again ever more rarely; True once that has been so for too long."""
    return is_true(
        "UPDATE payouts SET refused_since = COALESCE(refused_since, app_now()), wait_reason = %s,"
        " wait_kind = 'network',"
        " due_at = app_now() + LEAST(make_interval(secs => %s), GREATEST(make_interval(secs => %s),"
        "   app_now() - COALESCE(refused_since, app_now())))"
        " WHERE id = %s AND status = 'approved' RETURNING refused_since <= app_now() - make_interval(secs => %s)",
        (reason[: waiting.REASON_CHARS_MAX], REFUSED_PAUSE_MAX_S, REFUSED_PAUSE_MIN_S, payout_id, REFUSED_FOR_S),
    )


def backlog() -> list[tuple[str, int, float]]:
    """Return, for each status that is not final, how many payouts are in it and how many seconds the oldest waits."""
    return rows(
        "SELECT status, count(*), extract(epoch FROM app_now() - min(created_at))::float8 FROM payouts"
        " WHERE status IN ('pending', 'awaiting_cosign', 'approved', 'broadcasting', 'sent') GROUP BY status"
    )


def kept_back() -> list[tuple[str, int]]:
    """Return, by network, how many approved payouts something keeps from being signed, but for their maturity."""
    return rows(
        "SELECT network, count(*) FILTER (WHERE wait_reason NOT IN ('', %s)) FROM payouts WHERE status = 'approved'"
        " GROUP BY network",
        (IMMATURE,),
    )


# An oracle's verdict on an address is believed for this long.
VERDICT_HOLDS_S: Final = 86_400


def verdict(network: str, address: str) -> bool | None:
    """Return whether a network's oracle lately called an address sanctioned; None if it was not asked lately."""
    is_sanctioned: bool | None = value(
        "SELECT is_sanctioned FROM sanction_verdicts WHERE network = %s AND address = %s"
        " AND checked_at BETWEEN app_now() - make_interval(secs => %s) AND app_now() + make_interval(secs => %s)",
        (network, address, VERDICT_HOLDS_S, FUTURE_MAX_S),
    )
    return is_sanctioned


def store_verdict(network: str, address: str, *, is_sanctioned: bool) -> None:
    """Note what an oracle said of an address now."""
    SanctionVerdict(network=network, address=address, is_sanctioned=is_sanctioned).write(
        "ON CONFLICT (network, address) DO UPDATE SET is_sanctioned = EXCLUDED.is_sanctioned, checked_at = app_now()"
    )


def prune_verdicts(*, limit: int) -> int:
    """Forget some verdicts that are no longer believed; return how many."""
    return execute(
        "WITH limits AS MATERIALIZED (SELECT app_now() - make_interval(secs => %s) AS at)"
        " DELETE FROM sanction_verdicts WHERE checked_at < (SELECT at FROM limits) AND ctid = ANY (ARRAY("
        " SELECT ctid FROM sanction_verdicts WHERE checked_at < (SELECT at FROM limits) ORDER BY checked_at LIMIT %s))",
        (VERDICT_HOLDS_S, limit),
    )
