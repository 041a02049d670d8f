"""Pays a payment, or lets its time run out, at the click of a developer. Used by api.app, in development alone.

The strip under a payment's page posts here. The desk of `sluice dev` does the work on its own chains; production has
neither the strip nor this route.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

import urllib3
from falcon import Request, Response

from api.pages.languages import Language
from api.pages.pages import Outcome, PaymentPage
from api.routes.invoices.pay import SELECT, find
from core.catalogue.catalogue import Pair
from core.errors import GatewayBusy, PayMethodNotAccepted
from core.money import parse_units
from core.texts.render import coin_text
from models.db.base import app_now
from models.invoices.rows import InvoiceRow

ROUTE: Final = "/dev/pay/{invoice_id}"
LIMIT_S: Final = 20.0
# Parts of the asked amount, in percent.
PART_PERCENT: Final = 40
OVER_PERCENT: Final = 150
PERCENT: Final = 100


class DevelopmentPage(PaymentPage):
    """POST /dev/pay/<uuid>."""

    methods = frozenset({"POST"})
    allow = "POST"

    def on_post(self, req: Request, resp: Response, invoice_id: str) -> None:
        """Do as the strip's button says, and lead back to the payment."""

        def act(form: dict[str, str], _say: Language) -> Outcome:
            self._do(find(self._gateway, invoice_id).invoice, form.get("act", ""))
            return Outcome(leads_to=f"/pay/{invoice_id}")

        self._take_form(
            req,
            resp,
            endpoint=SELECT,
            params={"invoice_id": invoice_id},
            act=act,
            show=lambda outcome, say: self._text(invoice_id, say, outcome),
        )

    def _do(self, invoice: InvoiceRow, act: str) -> None:
        if act == "expire":
            left_s = int((invoice.expires_at - app_now()).total_seconds())
            self._ask("advance", seconds=max(0, left_s) + 1)
            return
        pair = self._gateway.catalogue.pair(invoice.pay_currency or "", invoice.network or "")
        if pair is None:
            raise PayMethodNotAccepted
        asked_units = self._on_network(pair, invoice.payer_units or 0)
        rest_units = max(0, asked_units - self._on_network(pair, invoice.paid_units))
        match act:
            case "exact":
                self._pay(invoice, pair, rest_units)
            case "part":
                self._pay(invoice, pair, asked_units * PART_PERCENT // PERCENT)
            case "over":
                self._pay(invoice, pair, asked_units * OVER_PERCENT // PERCENT)
            case "other":
                other = next(each for each in self._gateway.catalogue.pairs_on(pair.network) if each != pair)
                self._pay(invoice, other, 10**other.decimals)

    def _on_network(self, pair: Pair, units: int) -> int:
        """Return units of a coin as units of its network."""
        text = coin_text(self._gateway.catalogue, pair.currency, units)
        return parse_units(text, digits=pair.decimals, error=ValueError)

    def _pay(self, invoice: InvoiceRow, pair: Pair, units: int) -> None:
        self._ask("pay", network=pair.network, currency=pair.currency, to=invoice.address, units=units)

    def _ask(self, order: str, **fields: Any) -> None:
        """Have the desk do an order. Raises GatewayBusy with the desk's reason."""
        url = f"{self._gateway.settings.development_desk_url}/{order}"
        try:
            answer = urllib3.request("POST", url, body=json.dumps(fields), timeout=LIMIT_S, retries=False)
        except urllib3.exceptions.HTTPError as error:
            raise GatewayBusy(f"The desk does not answer: {error}") from None
        if answer.status != HTTPStatus.OK:
            raise GatewayBusy(answer.data.decode(errors="replace"))
