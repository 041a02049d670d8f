"""Serves the page of a cheque, where its holder names an address, checks it, and follows the money. Used by api.app.

It works in two steps, since an address may be mistyped and no transfer can be called back: the first step checks the
address and shows it large, the second orders the payout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from falcon import Request, Response

from api.pages import forms, icons
from api.pages.pages import NO_OUTCOME, HostedPage, Outcome, with_tag
from api.routes.payout_links.claims import CLAIM, find
from core import errors
from core.addresses.addresses import AddressError, display, parse
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from models.payout_links import views as payout_link_views
from models.payout_links.rows import PayoutLinkRow
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow

GROUP_CHARS: Final = 4
ASK_SENDER: Final = "Please ask the person or shop that sent you this link."


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
    subject = "payout link"

    def on_get(self, req: Request, resp: Response, token: str) -> None:
        """Show a cheque to the holder of its token."""
        self._show(req, resp, lambda: with_tag(req, resp, self._text(token)))

    on_head = on_get

    def on_post(self, req: Request, resp: Response, token: str) -> None:
        """Check the recipient's address, or order the payout to the address that was checked."""
        params = {"token": token}

        def act(form: dict[str, str]) -> Outcome:
            if form.get("step") == "send":
                order = {"address": form.get("address", ""), "memo": form.get("memo", "")}
                forms.submit(self._gateway, req, CLAIM, params, order)
                return Outcome(leads_to=f"/claim/{token}")
            return self._checked(token, form)

        self._take_form(
            req,
            resp,
            endpoint=CLAIM,
            params=params,
            act=act,
            show=lambda outcome: self._text(token, outcome),
        )

    def _checked(self, token: str, form: dict[str, str]) -> Outcome:
        """Return the address in its shown form, to be confirmed; or the form again, with a problem or to be changed."""
        address = form.get("address", "")
        if form.get("step") != "check":
            return Outcome(fields=form)
        network = self._network(find(token))
        try:
            shown = display(network, parse(network, address))
        except AddressError as refusal:
            problem = str(refusal) if address else errors.PayoutlinkNoAddress.text
            return Outcome(status=errors.PayoutlinkBadAddress.status, problem=problem, fields=form)
        return Outcome(fields=form | {"checked": shown})

    def _network(self, row: PayoutLinkRow) -> Network:
        return self._gateway.catalogue.networks[row.network]

    def _text(self, token: str, outcome: Outcome = NO_OUTCOME) -> str:
        row = find(token)
        view = payout_link_views.public(self._gateway.catalogue, row)
        network = self._network(row)
        payout = payouts.find(row.merchant_id, row.payout_id) if row.payout_id else None
        checked = outcome.fields.get("checked", "")
        return self._page.render(
            link=view,
            words=words_of(view["status"], payout, is_checked=bool(checked)),
            sent=None if payout is None else self._sent(network, payout),
            problem=outcome.problem,
            address=outcome.fields.get("address", ""),
            memo=outcome.fields.get("memo", ""),
            checked=checked,
            groups=[checked[at : at + GROUP_CHARS] for at in range(0, len(checked), GROUP_CHARS)],
            expires_unix=int(row.expires_at.timestamp()),
            network_name=network.name,
            takes_memo=traits_of(network).has_memo,
            coin_icon=icons.COINS[row.currency],
            network_icon=icons.NETWORKS[row.network],
            # The reader's device decides: a cheque has no theme of its own.
            theme="light dark",
        )

    def _sent(self, network: Network, payout: PayoutRow) -> Sent:
        return Sent(
            address=display(network, payout.address),
            payout_id=str(payout.id),
            txid=payout.txid,
            transaction_url=self._gateway.settings.transaction_url(network, payout.txid),
            confirmations=payout.confirmations,
        )


def words_of(status: str, payout: PayoutRow | None, *, is_checked: bool) -> Words:
    """Return the words for a cheque's status. is_checked: an address was checked and waits to be confirmed."""
    if payout is not None:
        return _words_of_payout(payout)
    match status:
        case "funded":
            return Words(heading="Is this address right?" if is_checked else "Where should it go?")
        case "cancelled":
            return Words(heading="The sender has taken this back", lines=(ASK_SENDER,), tone="attention", is_final=True)
        case "expired":
            gone = "The money went back to the sender, who can give you a new link."
            return Words(heading="This link has expired", lines=(gone,), tone="attention", is_final=True)
    return Words(heading="A claim is under way", lines=("This takes a moment.",))


def _words_of_payout(payout: PayoutRow) -> Words:
    match payout.status:
        case "confirmed":
            sent = "The network has confirmed it."
            return Words(heading="It has been sent", lines=(sent,), tone="good", is_final=True)
        case "failed" | "cancelled":
            back = "The transfer did not take place, and the money went back to the sender."
            return Words(heading="It could not be sent", lines=(back, ASK_SENDER), tone="attention", is_final=True)
        case "sent":
            return Words(heading="It is on its way", lines=("The network is confirming it.",), tone="good")
    return Words(heading="It is on its way", lines=("It is being sent. That can take some minutes.",), tone="good")
