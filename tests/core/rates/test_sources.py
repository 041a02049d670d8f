"""Reads the answers of public rate sources and refuses bad ones."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import cast
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.catalogue.catalogue import load_catalogue
from core.rates.shapes import SHAPES, Prices, SourceRefused, SymbolRefused, price_of
from core.rates.sources import Quotes, address, load_sources, quotes_of, read_prices
from tests.peers.rate_server import DOLLARS, RateMarket

SOURCES = sorted(load_sources())
NOW = datetime(2025, 11, 21, 12, tzinfo=UTC)
LAUGHS = b"""<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol1 "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">]>
<Cube><Cube time="2025-11-21"><Cube currency="USD" rate="1.15"/><x>&lol1;</x></Cube></Cube>"""


def read(name: str, body: bytes | str, at: datetime = NOW) -> Quotes:
    source = load_sources()[name]
    return quotes_of(source, read_prices(source, body.encode() if isinstance(body, str) else body, at=at))


def coingecko(**coins: tuple[str, int]) -> str:
    entries = (f'"{coin}":{{"usd":{usd},"last_updated_at":{at}}}' for coin, (usd, at) in coins.items())
    return "{" + ",".join(entries) + "}"


def erapi(rates: str, *, base: str = "USD", result: str = "success") -> str:
    moment = f'"time_last_update_unix":{int(NOW.timestamp())}'
    return f'{{"result":"{result}","base_code":"{base}",{moment},"rates":{rates}}}'


# --- the table


def test_every_coin_has_four_sources_and_every_fiat_two() -> None:
    catalogue = load_catalogue("production")
    for currency in {*catalogue.assets, *catalogue.fiats} - {"USD"}:
        sources = [name for name, source in load_sources().items() if currency in source.currencies]
        assert len(sources) >= (4 if currency in catalogue.assets else 2), currency


def test_the_table_names_no_currency_that_the_catalogue_lacks() -> None:
    catalogue = load_catalogue("production")
    for source in load_sources().values():
        assert all(catalogue.is_pricing_currency(currency) for currency in source.currencies)


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("kraken", "pair=A,B"),
        ("binance", 'symbols=["A","B"]'),
        ("coingecko", "ids=A,B&vs_currencies=usd"),
        ("bitfinex", "symbols=A,B"),
    ],
)
def test_the_address_asks_for_the_symbols(name: str, query: str) -> None:
    source = load_sources()[name]
    assert query in unquote(address(source, source.url, ["A", "B"]))


def test_a_former_symbol_counts_only_if_the_present_one_is_missing() -> None:
    def body(*prices: tuple[str, str]) -> str:
        return "[" + ",".join(f'{{"symbol":"{symbol}","price":"{price}"}}' for symbol, price in prices) + "]"

    assert read("binance", body(("TONUSDT", "1.5"), ("GRAMUSDT", "1.8"))) == {"TON": Decimal("1.8")}
    assert read("binance", body(("TONUSDT", "1.5"))) == {"TON": Decimal("1.5")}
    assert read("coinbase", '{"data":{"currency":"USD","rates":{"TON":"0.5"}}}') == {"TON": Decimal(2)}


@pytest.mark.parametrize(
    ("name", "body"),
    [("kraken", '{"error":["EQuery:Unknown asset pair"]}'), ("binance", '{"code":-1121,"msg":"Invalid symbol."}')],
)
def test_an_unknown_symbol_is_distinguished_from_other_refusals(name: str, body: str) -> None:
    with pytest.raises(SymbolRefused):
        read(name, body)


def test_coinbase_is_not_asked_for_usdc() -> None:
    assert "USDC" not in load_sources()["coinbase"].currencies


def test_every_address_is_https() -> None:
    assert all(source.url.startswith("https://") for source in load_sources().values())


# --- answers as they should be


@pytest.mark.parametrize("name", SOURCES)
def test_an_honest_answer_is_read_whole(name: str) -> None:
    source = load_sources()[name]
    quotes = read(name, RateMarket().body(name), datetime.now(UTC))
    assert quotes.keys() == source.currencies
    unit = Decimal(DOLLARS["USDT"]) if source.quoted_in == "USDT" else 1
    for currency, price in quotes.items():
        dollars = Decimal(DOLLARS[currency])
        assert abs(price * unit - dollars) < dollars * Decimal("1e-6"), currency


def test_coinbase_answers_are_read() -> None:
    body = '{"data":{"currency":"USD","rates":{"BTC":"0.0000125","EUR":"0.8","XYZ":"7","USDC":"1.0"}}}'
    assert read("coinbase", body) == {"BTC": Decimal(80000), "EUR": Decimal("1.25")}


def test_kraken_answers_are_read() -> None:
    body = '{"error":[],"result":{"XXBTZUSD":{"a":["9","1","1"],"c":["80000.10000","0.5"]},"ZUSDZJPY":{"c":["160.0"]}}}'
    assert read("kraken", body) == {"BTC": Decimal("80000.1"), "JPY": Decimal("0.00625")}


def test_binance_quotes_in_tether() -> None:
    body = '[{"symbol":"BTCUSDT","price":"80000.01000000"},{"symbol":"ETHBTC","price":"0.03"}]'
    assert read("binance", body) == {"BTC": Decimal("80000.01")}


def test_short_or_odd_bitfinex_rows_are_left_out() -> None:
    body = '[["tBTCUSD",1,2,3,4,5,6,80000.5,8,9,10],["tETHUSD",1],[7,1,2,3,4,5,6,7],"x",["tSOLUSD",1,2,3,4,5,6,null]]'
    assert read("bitfinex", body) == {"BTC": Decimal("80000.5")}


def test_coingecko_prices_keep_their_digits() -> None:
    moment = int(NOW.timestamp()) - 30
    body = coingecko(bitcoin=("80000.123456789012345678", moment), dai=("1.2e-5", moment))
    assert read("coingecko", body) == {"BTC": Decimal("80000.123456789012345678"), "DAI": Decimal("0.000012")}


def test_erapi_answers_are_read() -> None:
    body = erapi('{"USD":1,"EUR":0.8,"VND":25000}')
    assert read("erapi", body) == {"EUR": Decimal("1.25"), "VND": Decimal("0.00004")}


def test_ecb_rates_are_converted_from_euros() -> None:
    rates = "<Cube currency='USD' rate='1.2'/><Cube currency='GBP' rate='0.8'/>"
    other = "<Note currency='CHF' rate='0.5'/>"
    body = f"<Envelope>{other}<Cube><Cube time='2025-11-20'>{rates}</Cube></Cube></Envelope>"
    assert read("ecb", body) == {"EUR": Decimal("1.2"), "GBP": Decimal("1.5")}


# --- answers that count in part


ABSURD = (
    "0", "-1", "1e400", "1e99", "1e-30", '"NaN"', '"Infinity"', '"1_000"', '"\uff11"', '"0x1"', '"1,5"', '" 1"', '""',
    "null", "true", "[]", "{}", '"' + "9" * 400 + '"', "0." + "0" * 40 + "1", '"1\\u0030"', '"\\u0000"',
)  # fmt: skip


@pytest.mark.parametrize("name", [name for name in SOURCES if name != "ecb"])
def test_an_absurd_price_is_left_out_and_the_others_count(name: str) -> None:
    victim = min(load_sources()[name].currencies)
    market = RateMarket()
    for text in ABSURD:
        market.lies = {name: {victim: text}}
        quotes = read(name, market.body(name), datetime.now(UTC))
        assert quotes.keys() == load_sources()[name].currencies - {victim}, text


@pytest.mark.parametrize("rate", ["0", "-1", "NaN", "1e400", "", "9" * 30, "\uff11"])
def test_an_absurd_price_of_the_ecb_is_left_out(rate: str) -> None:
    body = f"<Cube time='2025-11-21'><Cube currency='USD' rate='1.2'/><Cube currency='GBP' rate='{rate}'/></Cube>"
    assert read("ecb", body) == {"EUR": Decimal("1.2")}


@pytest.mark.parametrize("name", SOURCES)
def test_a_missing_currency_is_absent(name: str) -> None:
    victim = max(load_sources()[name].currencies - {"EUR"})
    market = RateMarket()
    market.lies = {name: {victim: None}}
    assert victim not in read(name, market.body(name), datetime.now(UTC))


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (
            "kraken",
            '{"error":[],"result":{"XXBTZUSD":{"c":["2","1"]},"XETHZUSD":7,"SOLUSD":{"c":[]},"TRXUSD":{"c":3}}}',
        ),
        ("binance", '[{"symbol":"BTCUSDT","price":"2"},7,{"symbol":"ETHUSDT"},{"symbol":4,"price":"2"}]'),
        (
            "coingecko",
            f'{{"bitcoin":{{"usd":2,"last_updated_at":{int(NOW.timestamp())}}},"ethereum":{{"usd":2}},"dai":7,"tron":{{}}}}',
        ),
    ],
)
def test_a_malformed_entry_is_left_out_and_the_others_count(name: str, body: str) -> None:
    assert read(name, body) == {"BTC": Decimal(2)}


@pytest.mark.parametrize("age_s", [601, -601])
def test_a_coin_with_an_old_or_future_price_is_left_out(age_s: int) -> None:
    moment = int(NOW.timestamp())
    body = coingecko(bitcoin=("2", moment - 600), dai=("1", moment - age_s))
    assert read("coingecko", body) == {"BTC": Decimal(2)}


@pytest.mark.parametrize("moment", [10**400, -(10**400), 2**64], ids=["far", "long ago", "64 bits"])
def test_an_impossible_time_makes_no_price(moment: int) -> None:
    body = coingecko(bitcoin=("2", int(NOW.timestamp())), dai=("1", moment))
    assert read("coingecko", body) == {"BTC": Decimal(2)}
    with pytest.raises(SourceRefused):
        read("erapi", erapi('{"EUR":1}').replace(str(int(NOW.timestamp())), str(moment)))


@pytest.mark.parametrize("error", [OverflowError, InvalidOperation, ValueError])
def test_a_malformed_number_spoils_one_source_only(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def fail(_body: bytes, _at: datetime) -> Prices:
        raise error

    monkeypatch.setitem(cast("dict[str, object]", SHAPES), "kraken", fail)
    with pytest.raises(SourceRefused):
        read("kraken", b"{}")


# --- answers that do not count


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(
    "body",
    [b"", b"<html><body>Just a moment...</body></html>", b"null", b"[]", b"{}", b"NaN", b"\xff\xfe\x00", b"[" * 200_000,
     b'{"a":' * 200_000, b'{"data":{"currency":"USD","rates":{"BTC":NaN}}}', b'"\xed\xa0\x80"', b"\x00" * 100],
)  # fmt: skip
def test_garbage_is_refused(name: str, body: bytes) -> None:
    with pytest.raises(SourceRefused):
        read(name, body)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("kraken", '{"error":["EQuery:Unknown asset pair"]}'),
        ("kraken", '{"error":["EService:Unavailable"],"result":{"XXBTZUSD":{"c":["2","1"]}}}'),
        ("binance", '{"code":-1121,"msg":"Invalid symbol."}'),
        ("coingecko", '{"status":{"error_code":429,"error_message":"Throttled"}}'),
        ("coinbase", '{"errors":[{"id":"internal_server_error","message":"sorry"}]}'),
        ("coinbase", '{"data":{"currency":"EUR","rates":{"BTC":"0.1"}}}'),
        ("erapi", '{"result":"error","error-type":"unsupported-code"}'),
        ("erapi", erapi('{"EUR":1}', base="EUR")),
        ("erapi", erapi('{"EUR":1}', result="error")),
        ("ecb", "<Cube><Cube currency='USD' rate='1.2'/></Cube>"),
        ("ecb", "<Cube time='2025-11-21'><Cube currency='GBP' rate='0.8'/></Cube>"),
        ("ecb", "<Cube time='yesterday'><Cube currency='USD' rate='1.2'/></Cube>"),
        ("ecb", "<Cube time='2025-11-21'><Cube currency='USD' rate='1.2'/>"),
    ],
)
def test_an_error_or_a_table_of_something_else_is_refused(name: str, body: str) -> None:
    with pytest.raises(SourceRefused):
        read(name, body)


def test_an_xml_bomb_is_refused_at_its_first_line() -> None:
    with pytest.raises(SourceRefused, match="document type"):
        read("ecb", LAUGHS)


def test_deeply_nested_xml_is_read() -> None:
    body = "<Cube time='2025-11-21'><Cube currency='USD' rate='1.2'/>" + "<a>" * 100_000 + "</a>" * 100_000 + "</Cube>"
    assert read("ecb", body) == {"EUR": Decimal("1.2")}


@pytest.mark.parametrize("name", ["erapi", "ecb"])
def test_a_table_may_be_as_old_as_the_holidays_but_not_older(name: str) -> None:
    body = RateMarket().body(name)
    assert read(name, body, datetime.now(UTC) + timedelta(days=5))
    for days in (9, -9):
        with pytest.raises(SourceRefused, match="out of date"):
            read(name, body, datetime.now(UTC) + timedelta(days=days))


@given(st.sampled_from(SOURCES), st.binary(max_size=200))
def test_arbitrary_bytes_are_only_refused(name: str, body: bytes) -> None:
    with pytest.raises(SourceRefused):
        read(name, body)


@given(st.sampled_from(SOURCES), st.data())
def test_a_damaged_answer_gives_valid_prices_or_none(name: str, data: st.DataObject) -> None:
    body = bytearray(RateMarket().body(name))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        quotes = read(name, bytes(body), datetime.now(UTC))
    except SourceRefused:
        return
    assert all(Decimal("1e-9") <= price <= Decimal("1e9") for price in quotes.values())


@given(st.text(max_size=40))
def test_a_price_is_a_plain_number_or_none(text: str) -> None:
    price = price_of(text.encode("utf-8", "surrogatepass"))
    assert price is None or (price.is_finite() and price > 0)
