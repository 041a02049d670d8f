"""Reads what each public source of rates answers, in its own way. Pure; called by core.rates.sources.

A shape turns a body into prices by the source's own symbols. A body of another shape is refused as a whole; a single
price that is odd is left out, and the others count. No price passes through a float: its digits are read as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final, TypeVar
from xml.parsers import expat

import msgspec
from msgspec import Raw, Struct

# A price outside these is a mistake of the source, whatever the currency.
PRICE_MIN: Final = Decimal("1e-9")
PRICE_MAX: Final = Decimal("1e9")
# If a source dates a price, an older one no longer counts as a market's price.
MARKET_AGE_MAX: Final = timedelta(minutes=10)
# Daily tables rest over weekends and holidays.
TABLE_AGE_MAX: Final = timedelta(days=7)

# How a market refuses a question that names a symbol it does not trade, or no longer.
KRAKEN_UNKNOWN: Final = "EQuery:Unknown asset pair"
BINANCE_UNKNOWN: Final = frozenset({-1121, -1100})
# Where the price of the last trade is in a row.
BITFINEX_LAST: Final = 7

EXACT: Final = Context(prec=50, rounding=ROUND_HALF_EVEN)

_PRICE: Final = re.compile(rb"[0-9]{1,12}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?")

Prices = Mapping[str, Decimal]
T = TypeVar("T")


class SourceRefused(Exception):  # noqa: N818 - reads as what happened
    """An answer that cannot be used, with the reason in our own words: nothing of the answer is repeated."""


def bounded(price: Decimal) -> Decimal | None:
    """Return a price that a currency can have, or None."""
    return price if price.is_finite() and PRICE_MIN <= price <= PRICE_MAX else None


def inverted(price: Decimal) -> Decimal | None:
    """Return what one unit of the other side costs."""
    return bounded(EXACT.divide(Decimal(1), price))


def price_of(written: bytes) -> Decimal | None:
    """Read a JSON number, or a string that holds one, as it is written."""
    text = written.strip().removeprefix(b'"').removesuffix(b'"')
    return bounded(Decimal(text.decode())) if _PRICE.fullmatch(text) else None


class SymbolRefused(SourceRefused):
    """An answer that refuses the whole question because of one symbol in it."""


class _CoinbaseData(Struct):
    currency: str
    rates: dict[str, Raw]


class _Coinbase(Struct):
    data: _CoinbaseData


class _KrakenTicker(Struct):
    # The last trade: price and lot.
    c: list[Raw]


class _Kraken(Struct):
    error: list[str]
    result: dict[str, Raw] = {}


class _Binance(Struct):
    symbol: str
    price: Raw


class _BinanceError(Struct):
    code: int


class _CoinGecko(Struct):
    usd: Raw
    last_updated_at: int


class _ErApi(Struct):
    result: str
    base_code: str
    time_last_update_unix: int
    rates: dict[str, Raw]


def read_coinbase(body: bytes, _at: datetime) -> Prices:
    """Return units of each currency for one US dollar."""
    answer = _decode(body, _Coinbase).data
    if answer.currency != "USD":
        raise SourceRefused("the table is not in US dollars")
    return _prices(answer.rates.items())


def read_kraken(body: bytes, _at: datetime) -> Prices:
    """Return the price of the last trade of each pair."""
    answer = _decode(body, _Kraken)
    if any(code.startswith(KRAKEN_UNKNOWN) for code in answer.error):
        raise SymbolRefused("the source does not know a symbol")
    if any(code.startswith("E") for code in answer.error):
        raise SourceRefused("the source answered with an error")
    tickers = ((pair, _lenient(ticker, _KrakenTicker)) for pair, ticker in answer.result.items())
    return _prices((pair, ticker.c[0]) for pair, ticker in tickers if ticker and ticker.c)


def read_binance(body: bytes, _at: datetime) -> Prices:
    """Return the price of the last trade of each symbol."""
    refusal = _lenient(body, _BinanceError)
    if refusal and refusal.code in BINANCE_UNKNOWN:
        raise SymbolRefused("the source does not know a symbol")
    tickers = (_lenient(ticker, _Binance) for ticker in _decode(body, list[Raw]))
    return _prices((ticker.symbol, ticker.price) for ticker in tickers if ticker)


def read_coingecko(body: bytes, at: datetime) -> Prices:
    """Return US dollars for one unit of each coin, by the source's own averages, which name their moment."""
    coins = ((name, _lenient(coin, _CoinGecko)) for name, coin in _decode(body, dict[str, Raw]).items())
    fresh = ((name, coin) for name, coin in coins if coin and _is_near(coin.last_updated_at, at, MARKET_AGE_MAX))
    return _prices((name, coin.usd) for name, coin in fresh)


def read_bitfinex(body: bytes, _at: datetime) -> Prices:
    """Return the price of the last trade of each symbol; those that it does not know are absent."""
    tickers = (_lenient(ticker, list[Raw]) for ticker in _decode(body, list[Raw]))
    whole = (ticker for ticker in tickers if ticker and len(ticker) > BITFINEX_LAST)
    return _prices((_lenient(ticker[0], str) or "", ticker[BITFINEX_LAST]) for ticker in whole)


def read_erapi(body: bytes, at: datetime) -> Prices:
    """Return units of each currency for one US dollar, updated daily."""
    answer = _decode(body, _ErApi)
    if answer.result != "success" or answer.base_code != "USD":
        raise SourceRefused("the table is not in US dollars")
    if not _is_near(answer.time_last_update_unix, at, TABLE_AGE_MAX):
        raise SourceRefused("the table is out of date")
    return _prices(answer.rates.items())


def read_ecb(body: bytes, at: datetime) -> Prices:
    """Return US dollars for one unit of each currency, out of a table in euros that is made on working days."""
    table = _EcbTable()
    table.read(body)
    if table.day is None or abs(at - table.day) > TABLE_AGE_MAX:
        raise SourceRefused("the table is out of date")
    euro = table.for_one_euro.get("USD")
    if euro is None:
        raise SourceRefused("the table has no US dollar")
    crossed = {code: bounded(EXACT.divide(euro, price)) for code, price in table.for_one_euro.items()}
    return {"EUR": euro, **{code: price for code, price in crossed.items() if price is not None}}


class _EcbTable:
    """Nested Cube elements: the outer has the day, the inner a currency and its units for one euro."""

    def __init__(self) -> None:
        self.day: datetime | None = None
        self.for_one_euro: dict[str, Decimal] = {}

    def read(self, body: bytes) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = self._element
        try:
            parser.Parse(body, True)
        except (expat.ExpatError, LookupError, ValueError):
            raise SourceRefused("the answer is not XML") from None

    def _element(self, name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(" ")[2] != "Cube":
            return
        if "time" in attributes:
            self.day = _day(attributes["time"])
        price = price_of(attributes.get("rate", "").encode())
        if price is not None:
            self.for_one_euro[attributes.get("currency", "")] = price


def _refuse_doctype(*_declaration: object) -> None:
    raise SourceRefused("the answer declares a document type")


def _day(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None


def _decode(body: bytes, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise SourceRefused("the answer has another shape") from None


def _lenient(body: bytes | Raw, shape: type[T]) -> T | None:
    try:
        return _decode(bytes(body), shape)
    except SourceRefused:
        return None


def _prices(written: Iterable[tuple[str, Raw]]) -> Prices:
    read = ((symbol, price_of(bytes(raw))) for symbol, raw in written)
    return {symbol: price for symbol, price in read if price is not None}


def _is_near(unix_s: int, at: datetime, age_max: timedelta) -> bool:
    """Return whether a moment is close to the present; one in the future speaks of a broken clock, theirs or ours."""
    # Whole numbers: one of four hundred digits is no float.
    return abs(int(at.timestamp()) - unix_s) <= age_max.total_seconds()


SHAPES: Final[Mapping[str, Callable[[bytes, datetime], Prices]]] = {
    "coinbase": read_coinbase,
    "kraken": read_kraken,
    "binance": read_binance,
    "coingecko": read_coingecko,
    "bitfinex": read_bitfinex,
    "erapi": read_erapi,
    "ecb": read_ecb,
}
