"""Expires payout links (cheques), and ends claims that stopped halfway. Notified by the scheduler."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import structlog

from actors.context import context
from actors.payout_links.checks import check_destination, check_unpaid
from actors.queue.broker import doorbell, ring
from actors.queue.isolated import isolated
from core.errors import DomainError, PayoutFrozen
from models.db.base import StoreUnavailableError, repeat_on_deadlock, transaction
from models.payout_links import claims as payout_link_claims
from models.payout_links import rows as payout_links

log = structlog.get_logger()

DUE_PER_STEP: Final = 200


@doorbell(queue="maintenance")
def expire_payout_links() -> None:
    """Expire due links and give back their money; notify itself again after a full page."""
    kept_open = payout_links.keep_open(DUE_PER_STEP)
    due = payout_links.due_for_expiry(DUE_PER_STEP)
    expired = [isolated(i, _expire, i) for i in due]
    if kept_open == DUE_PER_STEP or (len(due) == DUE_PER_STEP and any(expired)):
        ring("expire_payout_links")


def _expire(link_id: UUID) -> bool:
    with transaction():
        return payout_links.expire(link_id)


@doorbell(queue="maintenance")
def reap_claims() -> None:
    """End claims that stopped halfway, with their payout or by making the link funded again."""
    stuck = payout_link_claims.stuck(DUE_PER_STEP)
    finished = [isolated(i, _reap, i) for i in stuck]
    if len(stuck) == DUE_PER_STEP and any(finished):
        ring("reap_claims")


def _reap(link_id: UUID) -> bool:
    """Finish one claim; False if it was given up."""
    try:
        return repeat_on_deadlock(_finish, link_id)
    except StoreUnavailableError:
        raise
    except PayoutFrozen:
        # The claim may have been paid already: the link stays as it is until that is known.
        return False
    except DomainError as refusal:
        log.info("payout_link.claim_given_up", link_id=str(link_id), problem=refusal.code)
    except Exception:
        # After any other error the recipient can try again, and the merchant cancel.
        log.exception("payout_link.claim_failed", link_id=str(link_id))
    with transaction():
        payout_link_claims.roll_back(link_id)
    return False


def _finish(link_id: UUID) -> bool:
    ctx = context()
    with transaction():
        link = payout_links.lock(link_id)
        if link is None or link.status != "claiming":
            return False
        check_destination(ctx, link, link.claim_address or "")
        check_unpaid(ctx, link, link.claim_address or "", link.claim_memo)
        payout_link_claims.finish(ctx.catalogue, link_id)
    return True
