"""Quotes an invoice by a tick every second, as a reference for the pure rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from core.rates.generations import Generation
from core.rates.pricing import Quote


@dataclass
class EagerInvoice:
    """An invoice that a tick quotes again when its rate has expired and no payment holds it."""

    expires_at: datetime
    generations: list[Generation]
    price: Callable[[datetime], Quote | None]
    # Payments that are still there, in the coin's units; a tenth of a quote holds it.
    units: int = 0
    extended_number: int | None = field(default=None)
    quote_s: int = 900

    def tick(self, now: datetime) -> None:
        """Apply the tick of one moment."""
        newest = self.generations[-1]
        if self.units * 10 >= newest.quote.payer_units or not newest.rate_expires_at <= now < self.expires_at:
            return
        if newest.rate_expires_at >= self.expires_at:
            return
        quote = self.price(now)
        if quote is None:
            self._postpone(newest, now)
        else:
            after = Generation(
                number=newest.number + 1, quote=quote, valid_from=now, rate_expires_at=self._until(now), changed_at=now
            )
            self.generations[-1:] = replace(newest, unpriced_at=None), after

    def _postpone(self, newest: Generation, now: datetime) -> None:
        if self.extended_number != newest.number:
            self.extended_number = newest.number
            self.generations[-1] = replace(newest, rate_expires_at=self._until(now), is_extended=True, changed_at=now)
        elif newest.unpriced_at is None:
            self.generations[-1] = replace(newest, unpriced_at=now, changed_at=now)

    def _until(self, now: datetime) -> datetime:
        return min(self.expires_at, now.replace(microsecond=0) + timedelta(seconds=self.quote_s))
