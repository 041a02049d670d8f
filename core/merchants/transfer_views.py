"""Renders transfers to the personal wallet. Source: API reference, POST /v1/transfer/to-personal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from core.http.render import coin_text

if TYPE_CHECKING:
    from core.catalogue.catalogue import Catalogue


class Transferred(Protocol):
    """What a view needs of a transfer; models.merchants.transfers has it."""

    @property
    def currency(self) -> str: ...
    @property
    def units(self) -> int: ...
    @property
    def balance_units(self) -> int: ...


def to_personal(catalogue: Catalogue, shown: Transferred) -> dict[str, Any]:
    """Return what a transfer answers: the balance is the one right after it, also when it is told again."""
    return {
        "currency": shown.currency,
        "amount": coin_text(catalogue, shown.currency, shown.units),
        "direction": "to_personal",
        "personal_balance": coin_text(catalogue, shown.currency, shown.balance_units),
    }
