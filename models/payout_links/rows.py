"""Keeps payout links (cheques): money put aside for who shows the token. Rows, reads, and how they end unclaimed.

Written by actors.payout_links.calls (create, cancel) and actors.payout_links.ticks (expiry); models.payout_links.claims
pays them out. Locks are taken in one order: link, debt, balances.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, cast
from uuid import UUID

from core.errors import PayoutFrozen, PayoutlinkDuplicateReference, PayoutlinkNotCancellable, PayoutlinkNotFound
from core.invoices.states import ForbiddenTransitionError, check_transition
from core.payout_links.states import LINK_TRANSITIONS, LinkStatus
from core.payouts.states import WaitingFor
from models.db import fair
from models.db.base import column, execute, is_true, repeat_on_deadlock, rows, transaction, value
from models.db.table import BY_DATABASE, Table, Units, derived
from models.ledger import debts, ledger
from models.ledger.ledger import AVAILABLE, PAYOUT_HELD, Account, Transfer
from models.payouts.waiting import WAITING_FOR
from models.spends import signing_stops

# While payouts are frozen a link keeps at least the first of these; it is given the second, so as not to be written
# every minute.
KEPT_OPEN_S: Final = 3_600
KEPT_OPEN_UNTIL_S: Final = 7_200

# A freeze counts, a debt does not: the amount that an expired link returns repays the debt.
_IS_FROZEN: Final = (
    "EXISTS (SELECT 1 FROM payout_freezes f WHERE (f.scope, f.name) IN"
    " (('all', ''), ('network', l.network), ('merchant', l.merchant_id::text),"
    " ('coin', l.currency || ':' || l.network)))"
)
_DUE: Final = fair.fair(
    "payout_links l",
    "l.status = 'funded'",
    due=f"l.expires_at <= app_now() AND NOT {_IS_FROZEN}",
    order="l.expires_at",
    since="expires_at",
)


class PayoutLinkRow(Table, table="payout_links l"):
    """A payout link. Units are the ledger's: the amount that arrives, and the network fee on top."""

    id: UUID
    merchant_id: UUID
    batch_id: UUID | None = None
    position: int | None = None
    status: LinkStatus = "funded"
    currency: str
    network: str
    amount_units: Units
    fee_units: Units
    title: str = ""
    note: str = ""
    email: str = ""
    reference: str | None = None
    token_hash: bytes
    created_by: str
    request_id: str = ""
    expires_at: datetime
    claim_address: str | None = BY_DATABASE
    claim_memo: str = BY_DATABASE
    claiming_since: datetime | None = BY_DATABASE
    payout_id: UUID | None = BY_DATABASE
    created_at: datetime
    updated_at: datetime = BY_DATABASE
    # It can no longer be claimed; the next sweep returns the money.
    is_over: bool = derived(f"(l.status = 'funded' AND l.expires_at <= app_now() AND NOT {_IS_FROZEN})")

    # Of its payout.
    waiting_for: WaitingFor | None = derived(f"(SELECT {WAITING_FOR} FROM payouts p WHERE p.id = l.payout_id)")

    @property
    def held_units(self) -> int:
        """Return what is held for it."""
        return self.amount_units + self.fee_units

    @property
    def hold_reference(self) -> str:
        """Return the reference under which it is held."""
        return f"payout_link:{self.id}:hold"


def now() -> datetime:
    """Return the moment from which new links live, in whole milliseconds."""
    return cast("datetime", value("SELECT date_trunc('milliseconds', app_now())"))


def insert(new: PayoutLinkRow) -> PayoutLinkRow:
    """Write a link in the caller's transaction; hold() follows.

    Raises PayoutlinkDuplicateReference. Waits for another transaction that writes the same reference.
    """
    written = insert_all([new])
    if not written:
        raise PayoutlinkDuplicateReference
    return written[0]


def insert_all(news: Sequence[PayoutLinkRow]) -> list[PayoutLinkRow]:
    """Write links, and return those whose references were free, in no order."""
    return PayoutLinkRow.store_all(news, "ON CONFLICT (merchant_id, reference) WHERE reference IS NOT NULL DO NOTHING")


def hold(*links: PayoutLinkRow) -> None:
    """Put new links' money aside. Raises ledger.InsufficientFundsError."""
    ledger.post_all(
        [
            (link.hold_reference, [Transfer(_account(link, AVAILABLE), _account(link, PAYOUT_HELD), link.held_units)])
            for link in links
        ]
    )


def find(merchant_id: UUID, link_id: UUID) -> PayoutLinkRow | None:
    """Return a merchant's link; another merchant's is as absent as a missing one."""
    return PayoutLinkRow.first("l.id = %s AND l.merchant_id = %s", (link_id, merchant_id))


def find_by_token(token_hash: bytes) -> PayoutLinkRow | None:
    """Return the link of a token, by the token's SHA-256."""
    return PayoutLinkRow.first("l.token_hash = %s", (token_hash,))


def page(merchant_id: UUID, *, limit: int, offset: int) -> list[PayoutLinkRow]:
    """Return some of a merchant's links, newest first."""
    # The index alone passes over the links before the page.
    return PayoutLinkRow.read(
        "l.id IN (SELECT id FROM payout_links WHERE merchant_id = %s ORDER BY id DESC LIMIT %s OFFSET %s)"
        " ORDER BY l.id DESC",
        (merchant_id, limit, offset),
    )


def lock(link_id: UUID) -> PayoutLinkRow | None:
    """Lock a link until the transaction ends, and return it as it is then."""
    if not is_true("SELECT 1 FROM payout_links WHERE id = %s FOR UPDATE", (link_id,)):
        return None
    return reread(link_id)


def cancel(merchant_id: UUID, link_id: UUID) -> PayoutLinkRow:
    """Cancel a funded link in the caller's transaction; one that is cancelled or claimed is returned as it is.

    Raises PayoutlinkNotFound, PayoutlinkNotCancellable, and PayoutFrozen while the database may lack its claim.
    """
    known = find(merchant_id, link_id)
    link = None if known is None else lock(known.id)
    if link is None:
        raise PayoutlinkNotFound
    if link.status in {"cancelled", "claimed"}:
        return link
    if link.status != "funded":
        raise PayoutlinkNotCancellable
    if link.network in signing_stops.doubtful():
        raise PayoutFrozen
    return _end(link, "cancelled")


def expire(link_id: UUID) -> bool:
    """Expire one link in the caller's transaction and return its money.

    False if it is no longer due, or while the database may lack its claim.
    """
    link = lock(link_id)
    if link is None or not link.is_over or link.network in signing_stops.doubtful():
        return False
    _end(link, "expired")
    return True


def cancel_of_key(public_id: str) -> tuple[int, int]:
    """Cancel the funded links that a key made, each in its own transaction.

    Return how many are cancelled, and how many stay because the database may lack their claim.
    """
    pairs = rows(
        "SELECT merchant_id, id FROM payout_links WHERE status = 'funded' AND created_by = %s AND merchant_id ="
        " (SELECT merchant_id FROM api_keys WHERE public_id = %s) ORDER BY id",
        (public_id, public_id),
    )
    outcomes = [repeat_on_deadlock(_cancel_or_keep, merchant_id, link_id) for merchant_id, link_id in pairs]
    return outcomes.count(True), outcomes.count(False)


def _cancel_or_keep(merchant_id: UUID, link_id: UUID) -> bool | None:
    """Return whether a link is cancelled; None if a claim was first."""
    try:
        with transaction():
            return cancel(merchant_id, link_id).status == "cancelled" or None
    except PayoutlinkNotCancellable:
        return None
    except PayoutFrozen:
        return False


def due_for_expiry(limit: int) -> list[UUID]:
    """Return links whose time is over, of every merchant about as many. A freeze makes expiry wait."""
    return column(_DUE, {"limit": limit})


def keep_open(limit: int) -> int:
    """Put off the expiry of links whose payouts are frozen, lest the freeze eat their last hour; return how many.

    So a link that its recipient could not claim can be claimed for an hour at least after the freeze.
    """
    return execute(
        "UPDATE payout_links SET expires_at = app_now() + make_interval(secs => %s) WHERE id = ANY(ARRAY("
        " SELECT l.id FROM payout_links l WHERE l.status = 'funded'"
        f" AND l.expires_at < app_now() + make_interval(secs => %s) AND {_IS_FROZEN}"
        " LIMIT %s FOR UPDATE SKIP LOCKED))",
        (KEPT_OPEN_UNTIL_S, KEPT_OPEN_S, limit),
    )


def keep_open_one(link_id: UUID) -> None:
    """Keep a link open, as keep_open() does, whose claim was just refused for a freeze."""
    execute(
        "UPDATE payout_links l SET expires_at = app_now() + make_interval(secs => %s)"
        f" WHERE l.id = %s AND l.status = 'funded' AND l.expires_at < app_now() + make_interval(secs => %s)"
        f" AND {_IS_FROZEN}",
        (KEPT_OPEN_UNTIL_S, link_id, KEPT_OPEN_S),
    )


def move(link: PayoutLinkRow, status: LinkStatus, **columns: object) -> PayoutLinkRow:
    """Change a locked link's status and columns. Raises ForbiddenTransitionError."""
    check_transition(LINK_TRANSITIONS, link.status, status)
    written = "".join(f", {name} = %s" for name in columns)
    changed = execute(
        f"UPDATE payout_links SET status = %s, updated_at = date_trunc('milliseconds', app_now()){written}"
        " WHERE id = %s AND status = %s",
        (status, *columns.values(), link.id, link.status),
    )
    if not changed:
        raise ForbiddenTransitionError(f"payout link {link.id} is {link.status} no more, though it was locked")
    return reread(link.id)


def reread(link_id: UUID) -> PayoutLinkRow:
    """Return a link that is known to exist."""
    row = PayoutLinkRow.first("l.id = %s", (link_id,))
    if row is None:
        raise LookupError(f"payout link {link_id} vanished")
    return row


def _end(link: PayoutLinkRow, status: Literal["cancelled", "expired"]) -> PayoutLinkRow:
    """End a locked link unclaimed: the held amount repays debts first, and the rest becomes available."""
    ended = move(link, status)
    legs = debts.give(link.merchant_id, link.currency, link.held_units, out_of=_account(link, PAYOUT_HELD))
    ledger.post(f"payout_link:{link.id}:return", legs)
    return ended


def _account(link: PayoutLinkRow, kind: str) -> Account:
    return Account(link.merchant_id, kind, link.currency)
