"""Serves the page of a payment link, where a buyer chooses the amount and the coin. Used by api.app."""

from __future__ import annotations

import re
from typing import Any, Final

from falcon import Request, Response

from api.pages import forms
from api.pages.languages import Language
from api.pages.pages import NO_OUTCOME, HostedPage, Outcome
from api.routes.payment_links.buyers import CHECKOUT, find, public_view
from core.errors import DomainError, PaylinkDisabled
from models.merchants import rows as merchants

THOUSAND: Final = 3
_BLANKS: Final = re.compile(r"[\s'\u2019]")
_LAST_MARK: Final = re.compile(r"([.,])[0-9]*$")


class LinkPage(HostedPage):
    """GET /link/<link_id>."""

    template = "link.html"
    no_such = "problem.no_payment_link"

    def on_get(self, req: Request, resp: Response, link_id: str) -> None:
        """Show an open link, or say that it does not exist."""
        self._show(req, resp, lambda say: self._render(link_id, say))

    on_head = on_get

    def on_post(self, req: Request, resp: Response, link_id: str) -> None:
        """Check the link out, for browsers without scripts, and lead to the page of the payment."""
        params = {"link_id": link_id}

        def check_out(form: dict[str, str], _say: Language) -> Outcome:
            currency, _, network = form.get("coin", "").partition(":")
            order = {"currency": currency, "network": network, "payer_email": form.get("email", "")}
            amount = {"amount": plain_amount(form["amount"])} if "amount" in form else {}
            made = forms.submit(self._gateway, req, CHECKOUT, params, order | amount)
            return Outcome(leads_to=f"/pay/{made['uuid']}")

        self._take_form(
            req,
            resp,
            endpoint=CHECKOUT,
            params=params,
            act=check_out,
            show=lambda outcome, say: self._render(link_id, say, outcome),
        )

    def _render(self, link_id: str, say: Language, outcome: Outcome = NO_OUTCOME) -> str:
        row = find(self._gateway, link_id)
        # A field that is not set is absent there, and empty here.
        view = {"title": "", "description": "", "amount_fixed": "", **public_view(self._gateway, row)}
        wrong_field = _field_of(outcome)
        return self._page.render(
            say=say,
            link=view,
            fields={"amount": "", "email": "", "coin": "", **outcome.fields},
            problem=say("error.email") if wrong_field == "email" else outcome.problem,
            wrong_field=wrong_field,
            hint=bounds_text(view, say),
            methods=[self._method((each["currency"], each["network"])) for each in view["accepted"]],
            expires_unix=int(row.expires_at.timestamp()) if row.expires_at else None,
            # The reader's device decides: a link has no theme of its own.
            theme="light dark",
            shop=merchants.face_of(row.merchant_id),
        )

    def _error_key(self, error: DomainError) -> str:
        return "problem.links_disabled" if isinstance(error, PaylinkDisabled) else super()._error_key(error)


def _field_of(outcome: Outcome) -> str:
    """Return the field of the form that a problem is about; empty for the form as a whole."""
    if outcome.code == "request.bad_field":
        return "email"
    return "amount" if outcome.code.startswith(("paylink.", "payment.")) else ""


def plain_amount(written: str) -> str:
    """Return an amount as the API takes it, from the ways in which people write it: "12,50", "1 234,50", "1.234,50".

    An amount that can be read in two ways ("12,345") is left as it is, and the API refuses it.
    """
    text = _BLANKS.sub("", written)
    last = _LAST_MARK.search(text)
    if last is None:
        return text
    mark = last[1]
    other = "." if mark == "," else ","
    whole, *parts = text.split(mark)
    if len(parts) > 1:
        # Only thousands are marked more than once.
        is_grouped = re.fullmatch(r"[0-9]{1,3}", whole) and all(re.fullmatch(r"[0-9]{3}", part) for part in parts)
        return whole + "".join(parts) if is_grouped else text
    groups = whole.split(other)
    if len(groups) > 1 and re.fullmatch(rf"[0-9]{{1,3}}(?:\{other}[0-9]{{3}})+", whole) is None:
        return text
    is_thousands = (
        mark == "," and len(groups) == 1 and len(parts[0]) == THOUSAND and re.fullmatch(r"[1-9][0-9]{0,2}", whole)
    )
    return text if is_thousands else f"{''.join(groups)}.{parts[0]}"


def bounds_text(view: dict[str, Any], say: Language) -> str:
    """Return the bounds of a buyer's amount in words; empty if it has no bounds."""
    least, most, currency = view.get("amount_min"), view.get("amount_max"), view["currency"]
    if most:
        return say("link.between", least=least, most=f"{most} {currency}")
    return say("link.at_least", least=f"{least} {currency}") if least else ""
