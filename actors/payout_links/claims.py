"""Claims payout links for their holders: records the address, creates the payout. The API calls it and waits."""

from __future__ import annotations

from actors.context import context
from actors.payout_links.checks import DESTINATION_ERRORS, check_claimable, check_unpaid
from actors.queue.call_specs import CLAIM_PAYOUT_LINK
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.addresses import addresses
from core.catalogue.catalogue import Network
from core.errors import PayoutFrozen, PayoutlinkNotFound
from core.payout_links.schemas import Claim
from models.db.base import transaction
from models.payout_links import claims as payout_link_claims
from models.payout_links import rows as payout_links
from models.payout_links import views as payout_link_views
from models.payout_links.rows import PayoutLinkRow
from models.queue import calls
from models.queue.calls import AbandonedError


@call_actor(CLAIM_PAYOUT_LINK, body=Claim)
def claim_payout_link(info: CallInfo, claim: Claim) -> CallReply:
    """Pay a payout link to an address; the same address again gets the same payout, any other is refused."""
    ctx = context()
    link = payout_links.find_by_token(bytes.fromhex(claim.token_hash))
    if link is None:
        raise PayoutlinkNotFound
    address = _stored(ctx.catalogue.networks[link.network], claim.address)
    claiming = _start(info, link, address, claim.memo)
    with recorded(info) as record:
        if claiming.status == "claiming":
            # The claim may have begun before the commits that the database lost, and have gone elsewhere in those.
            check_unpaid(ctx, claiming, address, claiming.claim_memo)
        claimed = payout_link_claims.finish(ctx.catalogue, claiming.id)
        return record.store(payout_link_views.claimed(claimed))


def _stored(network: Network, address: str) -> str:
    """Parse an address into its stored form; only a claimable link's address is checked further."""
    try:
        return addresses.parse(network, address)
    except addresses.AddressError as refusal:
        raise DESTINATION_ERRORS.bad(str(refusal)) from None


def _start(info: CallInfo, link: PayoutLinkRow, address: str, memo: str) -> PayoutLinkRow:
    """Begin a claim to an address. A claim that stops after this is finished by a repetition or by the reaper."""
    ctx = context()
    try:
        with transaction():
            if calls.is_abandoned(info.call_id):
                raise AbandonedError
            return payout_link_claims.start(
                link.id, address=address, memo=memo, check=lambda locked: check_claimable(ctx, locked, address, memo)
            )
    except PayoutFrozen:
        payout_links.keep_open_one(link.id)
        raise
