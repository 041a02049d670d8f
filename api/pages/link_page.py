"""Serves the page of a payment link, where a buyer chooses the amount and the coin. Used by api.app."""

from __future__ import annotations

from typing import Any

from falcon import Request, Response

from api.pages.pages import HostedPage
from api.routes.payment_links.buyers import find, public_view
from core.errors import DomainError, PaylinkDisabled


class LinkPage(HostedPage):
    """GET /link/<link_id>."""

    template = "link.html"
    subject = "payment link"

    def on_get(self, req: Request, resp: Response, link_id: str) -> None:
        """Show an open link, or say that it does not exist."""
        self._show(req, resp, lambda: self._render(link_id))

    on_head = on_get

    def _render(self, link_id: str) -> str:
        row = find(self._gateway, link_id)
        # A field that is not set is absent there, and empty here.
        view = {"title": "", "description": "", "amount_fixed": "", **public_view(self._gateway, row)}
        return self._page.render(
            link=view,
            hint=bounds_text(view),
            methods=[self._method(method) for method in view["accepted"]],
            expires_unix=int(row.expires_at.timestamp()) if row.expires_at else None,
            # The reader's device decides: a link has no theme of its own.
            theme="light dark",
        )

    def _error_title(self, error: DomainError) -> str:
        if isinstance(error, PaylinkDisabled):
            return "Payment links are not available here"
        return super()._error_title(error)


def bounds_text(view: dict[str, Any]) -> str:
    """Return the bounds of a buyer's amount in words; empty if it has no bounds."""
    least, most, currency = view.get("amount_min"), view.get("amount_max"), view["currency"]
    if most:
        return f"From {least} to {most} {currency}"
    return f"At least {least} {currency}" if least else ""
