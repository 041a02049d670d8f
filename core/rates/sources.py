"""Lists the public sources of rates: rate_sources.json, and what an answer of theirs says.

Pure; called by actors.rates.refresh.
A new source of a known shape is a row of the file. Markets quote now; tables are made daily, for fiat money alone.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from core.rates.shapes import SHAPES, Prices, SourceRefused, inverted

SOURCES_FILE: Final = Path(__file__).with_name("rate_sources.json")

SYMBOLS: Final = "{symbols}"

Quotes = Mapping[str, Decimal]
"""The price of one unit, by currency, in what the source quotes in."""

Seconds = Annotated[int, Meta(ge=1)]
Code = Annotated[str, Meta(pattern="^[A-Z]{3,5}$")]


class Source(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the file."""

    kind: Literal["market", "table"]
    shape: Literal["coinbase", "kraken", "binance", "coingecko", "bitfinex", "erapi", "ecb"]
    # {symbols} is replaced by the symbols that are asked for; an address without it gives all that the source has.
    url: str
    # Between two symbols in the address.
    separator: str = ","
    quoted_in: Literal["USD", "USDT"]
    every_s: Seconds
    # How long an answer counts: some rounds, so that one that was missed does not matter.
    holds_s: Seconds
    # By currency: the symbol whose price is that of one unit.
    symbols: dict[Code, str] = {}
    # By currency: the symbol whose price is how many units one dollar buys.
    inverse_symbols: dict[Code, str] = {}
    # By currency: its symbol before the coin was renamed, used if the source does not know the present one.
    former_symbols: dict[Code, str] = {}

    @property
    def currencies(self) -> frozenset[str]:
        """Return what this source may quote."""
        return frozenset(self.symbols) | frozenset(self.inverse_symbols)

    @property
    def all_symbols(self) -> tuple[str, ...]:
        """Return every symbol to ask for, the former ones last."""
        return (*self.symbols.values(), *self.inverse_symbols.values(), *self.former_symbols.values())

    def named_by(self, symbols: Collection[str]) -> list[str]:
        """Return the currencies that these symbols are of."""
        tables = (self.symbols, self.inverse_symbols, self.former_symbols)
        return sorted({code for table in tables for code, symbol in table.items() if symbol in symbols})


@functools.cache
def load_sources() -> Mapping[str, Source]:
    """Read the file once."""
    return msgspec.json.decode(SOURCES_FILE.read_bytes(), type=dict[str, Source])


def address(source: Source, url: str, symbols: Collection[str]) -> str:
    """Return the address that asks a source for these symbols; any other is returned as it is."""
    return url.replace(SYMBOLS, source.separator.join(symbols))


def read_prices(source: Source, body: bytes, *, at: datetime) -> Prices:
    """Return the prices in an answer, by the source's symbols.

    at: the real time, to refuse prices of long ago. Raises SourceRefused where nothing of it can be used, and
    SymbolRefused where one symbol was the reason.
    """
    try:
        return SHAPES[source.shape](body, at)
    except (ArithmeticError, ValueError):
        # A number that no shape foresees must not keep the other sources from being read.
        raise SourceRefused("the answer has an impossible number") from None


def quotes_of(source: Source, prices: Prices) -> Quotes:
    """Return the prices of our currencies; missing and odd ones are absent. Raises SourceRefused if all are.

    A price under a former symbol counts only if the present symbol has none.
    """
    priced = {
        currency: prices.get(symbol, prices.get(source.former_symbols.get(currency, symbol)))
        for currency, symbol in {**source.symbols, **source.inverse_symbols}.items()
    }
    direct = {
        currency: inverted(price) if price and currency in source.inverse_symbols else price
        for currency, price in priced.items()
    }
    quotes = {currency: price for currency, price in direct.items() if price is not None}
    if not quotes:
        raise SourceRefused("the answer has no currency of ours")
    return quotes
