"""Lists the public sources of rates: rate_sources.json, and what an answer of theirs says.

Pure; called by actors.rates.refresh.
A new source of a known shape is a row of the file. Markets quote now; tables are made daily, for fiat money alone.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from core.rates.shapes import SHAPES, SourceRefused, inverted

SOURCES_FILE: Final = Path(__file__).with_name("rate_sources.json")

Quotes = Mapping[str, Decimal]
"""The price of one unit, by currency, in what the source quotes in."""

Seconds = Annotated[int, Meta(ge=1)]
Code = Annotated[str, Meta(pattern="^[A-Z]{3,5}$")]


class Source(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the file. The symbols of all currencies that are asked for stand in the address."""

    kind: Literal["market", "table"]
    shape: Literal["coinbase", "kraken", "binance", "coingecko", "erapi", "ecb"]
    url: str
    quoted_in: Literal["USD", "USDT"]
    every_s: Seconds
    # How long an answer counts: some rounds, so that one that was missed does not matter.
    holds_s: Seconds
    # By currency: the symbol whose price is that of one unit.
    symbols: dict[Code, str] = {}
    # By currency: the symbol whose price is how many units one dollar buys.
    inverse_symbols: dict[Code, str] = {}

    @property
    def currencies(self) -> frozenset[str]:
        """Return what this source may quote."""
        return frozenset(self.symbols) | frozenset(self.inverse_symbols)


@functools.cache
def load_sources() -> Mapping[str, Source]:
    """Read the file once."""
    return msgspec.json.decode(SOURCES_FILE.read_bytes(), type=dict[str, Source])


def read_quotes(source: Source, body: bytes, *, at: datetime) -> Quotes:
    """Return what an answer says of our currencies; those that it lacks, or prices oddly, are absent.

    at: the real time, to refuse prices of long ago. Raises SourceRefused where nothing of it can be used.
    """
    prices = SHAPES[source.shape](body, at)
    direct = {currency: prices.get(symbol) for currency, symbol in source.symbols.items()}
    inverse = {
        currency: inverted(prices[symbol]) for currency, symbol in source.inverse_symbols.items() if symbol in prices
    }
    quotes = {currency: price for currency, price in {**direct, **inverse}.items() if price is not None}
    if not quotes:
        raise SourceRefused("the answer has no currency of ours")
    return quotes
