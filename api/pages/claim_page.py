"""Serves the page of a cheque, where its holder names an address, checks it, and follows the money. Used by api.app.

It works in two steps, since an address may be mistyped and no transfer can be called back: the first step checks the
address and shows it large, the second orders the payout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from falcon import Request, Response

from api.pages import forms, icons
from api.pages.languages import Language
from api.pages.pages import NO_OUTCOME, HostedPage, Outcome
from api.routes.payout_links.claims import CLAIM, find
from core import errors
from core.addresses.addresses import AddressError, ForeignAddressError, LostAddressError, display, parse
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from models.payout_links import views as payout_link_views
from models.payout_links.rows import PayoutLinkRow
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow

GROUP_CHARS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The payout of a claimed cheque, as its recipient follows it."""

    address: str
    payout_id: str
    txid: str
    transaction_url: str
    confirmations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The state of a cheque in words."""

    heading: str
    lines: tuple[str, ...] = ()
    tone: str = "calm"
    # Nothing will change again.
    is_final: bool = False


class ClaimPage(HostedPage):
    """GET and POST /claim/<token>."""

    template = "claim.html"
    no_such = "problem.no_payout_link"

    def on_get(self, req: Request, resp: Response, token: str) -> None:
        """Show a cheque to the holder of its token."""
        self._show(req, resp, lambda say: self._new_text(req, resp, say, self._inputs(token, say)))

    on_head = on_get

    def on_post(self, req: Request, resp: Response, token: str) -> None:
        """Check the recipient's address, or order the payout to the address that was checked."""
        params = {"token": token}

        def act(form: dict[str, str], say: Language) -> Outcome:
            if form.get("step") == "send":
                order = {"address": form.get("address", ""), "memo": form.get("memo", "")}
                forms.submit(self._gateway, req, CLAIM, params, order)
                return Outcome(leads_to=f"/claim/{token}")
            return self._checked(token, form, say)

        self._take_form(
            req,
            resp,
            endpoint=CLAIM,
            params=params,
            act=act,
            show=lambda outcome, say: self._text(token, say, outcome),
        )

    def _checked(self, token: str, form: dict[str, str], say: Language) -> Outcome:
        """Return the address in its shown form, to be confirmed; or the form again, with a problem or to be changed."""
        address = form.get("address", "")
        if form.get("step") != "check":
            return Outcome(fields=form)
        network = self._network(find(token))
        try:
            shown = display(network, parse(network, address))
        except AddressError as refusal:
            problem = _problem(refusal, network, say) if address else say.error(errors.PayoutlinkNoAddress.code)
            return Outcome(status=errors.PayoutlinkBadAddress.status, problem=problem, fields=form)
        return Outcome(fields=form | {"checked": shown})

    def _network(self, row: PayoutLinkRow) -> Network:
        return self._gateway.catalogue.networks[row.network]

    def _text(self, token: str, say: Language, outcome: Outcome) -> str:
        return self._page.render(say=say, tag="", **self._inputs(token, say, outcome))

    def _inputs(self, token: str, say: Language, outcome: Outcome = NO_OUTCOME) -> dict[str, Any]:
        """Return all that a cheque's page shows."""
        row = find(token)
        view = payout_link_views.public(self._gateway.catalogue, row)
        network = self._network(row)
        payout = payouts.find(row.merchant_id, row.payout_id) if row.payout_id else None
        checked = outcome.fields.get("checked", "")
        return {
            "link": view,
            "words": words_of(say, view["status"], payout, is_checked=bool(checked)),
            "sent": None if payout is None else self._sent(network, payout),
            "problem": outcome.problem,
            "address": outcome.fields.get("address", ""),
            "memo": outcome.fields.get("memo", ""),
            "checked": checked,
            "groups": [checked[at : at + GROUP_CHARS] for at in range(0, len(checked), GROUP_CHARS)],
            "expires_unix": int(row.expires_at.timestamp()),
            "network_name": network.name,
            "takes_memo": traits_of(network).has_memo,
            "coin_icon": icons.COINS[row.currency],
            "network_icon": icons.NETWORKS[row.network],
            # The reader's device decides: a cheque has no theme of its own.
            "theme": "light dark",
        }

    def _sent(self, network: Network, payout: PayoutRow) -> Sent:
        return Sent(
            address=display(network, payout.address),
            payout_id=str(payout.id),
            txid=payout.txid,
            transaction_url=self._gateway.settings.transaction_url(network, payout.txid),
            confirmations=payout.confirmations,
        )


def _problem(refusal: AddressError, network: Network, say: Language) -> str:
    """Return the reason why money cannot be sent to an address."""
    if isinstance(refusal, LostAddressError):
        return say("address.lost")
    kind = "foreign" if isinstance(refusal, ForeignAddressError) else "invalid"
    return say(f"address.{kind}", network=network.name)


def words_of(say: Language, status: str, payout: PayoutRow | None, *, is_checked: bool) -> Words:
    """Return the words for a cheque's status. is_checked: an address was checked and waits to be confirmed."""
    if payout is not None:
        return _words_of_payout(say, payout)
    match status:
        case "funded":
            return Words(heading=say("claim.confirm" if is_checked else "claim.name"))
        case "cancelled":
            lines = (say("claim.ask_sender"),)
            return Words(heading=say("claim.taken_back"), lines=lines, tone="attention", is_final=True)
        case "expired":
            lines = (say("claim.expired_line"),)
            return Words(heading=say("claim.expired"), lines=lines, tone="attention", is_final=True)
    return Words(heading=say("claim.under_way"), lines=(say("claim.moment"),))


def _words_of_payout(say: Language, payout: PayoutRow) -> Words:
    match payout.status:
        case "confirmed":
            return Words(heading=say("claim.sent"), lines=(say("claim.sent_line"),), tone="good", is_final=True)
        case "failed" | "cancelled":
            lines = (say("claim.failed_line"), say("claim.ask_sender"))
            return Words(heading=say("claim.failed"), lines=lines, tone="attention", is_final=True)
    key = "claim.confirming" if payout.status == "sent" else "claim.sending"
    return Words(heading=say("claim.on_its_way"), lines=(say(key),), tone="good")
