"""The public sources of rates, played on loopback: honest by default, and whatever else a test wants of them."""

import contextlib
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast

from core.rates.sources import Source, load_sources

DOLLARS = {
    "EUR": "1.15", "GBP": "1.31", "RUB": "0.0124", "UAH": "0.0237", "PLN": "0.272", "CZK": "0.0475", "TRY": "0.0236",
    "CNY": "0.1405", "INR": "0.0112", "BRL": "0.187", "CAD": "0.71", "AUD": "0.645", "CHF": "1.24", "AED": "0.2723",
    "ZAR": "0.0578", "MXN": "0.0543", "IDR": "0.0000598", "THB": "0.0308", "VND": "0.0000379", "NGN": "0.00069",
    "JPY": "0.00637", "KRW": "0.00068", "USDT": "0.9995", "USDC": "0.9998", "DAI": "0.9999", "POL": "0.2",
    "ETH": "3000", "BNB": "900", "AVAX": "15", "TRX": "0.28", "SOL": "140", "TON": "1.8", "BTC": "95000",
}  # fmt: skip


@dataclass(frozen=True)
class Failure:
    """A failed answer, in one of many ways. pause_s passes before each piece of the body."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pause_s: float = 0.0
    piece_bytes: int = 0
    is_endless: bool = False
    is_cut: bool = False


# A market's answer if it does not know one of the symbols.
REFUSALS = {
    "kraken": Failure(body=b'{"error":["EQuery:Unknown asset pair"]}'),
    "binance": Failure(status=400, body=b'{"code":-1121,"msg":"Invalid symbol."}'),
}

Price = Decimal | str | None
"""What a source says: US dollars, or the very text that stands in its answer, or nothing."""


class RateMarket:
    """The answers of the sources: equal, except for those that lie."""

    def __init__(self) -> None:
        self.dollars = {currency: Decimal(usd) for currency, usd in DOLLARS.items()}
        self.lies: dict[str, dict[str, Price]] = {}
        # How old the answers that name their moment claim to be.
        self.age_s = 0
        # Symbols that no source knows.
        self.delisted: set[str] = set()

    def body(self, name: str, asked: Collection[str] | None = None) -> bytes:
        """Return a source's answer as its real counterpart would write it: to all symbols, or to those asked for."""
        source = load_sources()[name]
        texts = {
            symbol: text
            for symbol, text in self._texts(name, source)
            if symbol not in self.delisted and (asked is None or symbol in asked)
        }
        return RENDERERS[source.shape](texts, int(time.time()) - self.age_s)

    def _texts(self, name: str, source: Source) -> Iterator[tuple[str, str]]:
        unit = self.dollars["USDT"] if source.quoted_in == "USDT" else Decimal(1)
        present = source.symbols | source.inverse_symbols
        for currency, symbol in (*present.items(), *source.former_symbols.items()):
            price: Price = self.lies.get(name, {}).get(currency, self.dollars[currency])
            if price is None:
                continue
            if isinstance(price, Decimal):
                quoted = 1 / price if currency in source.inverse_symbols else price / unit
                price = f"{quoted:.18f}"
                if source.shape in {"coinbase", "kraken", "binance"}:
                    price = f'"{price}"'
            yield symbol, price


class RateServer(RateMarket):
    """A context manager. `env` points the settings here; change prices, lies and failures between requests."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: dict[str, Failure] = {}
        self.asked: Counter[str] = Counter()
        self.headers: dict[str, dict[str, str]] = {}
        self._stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.peer = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def urls(self) -> dict[str, str]:
        return {name: f"http://127.0.0.1:{self._server.server_port}/{name}?key=abc" for name in load_sources()}

    @property
    def env(self) -> dict[str, str]:
        return {f"RATES_{name.upper()}_URL": f"{url}&symbols={{symbols}}" for name, url in self.urls.items()}

    def silence(self, *names: str) -> None:
        """Let sources fail, all of them by default."""
        self.failures |= dict.fromkeys(names or load_sources(), Failure(status=503))

    def recover(self) -> None:
        self.failures.clear()
        self.lies.clear()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        name = handler.path.lstrip("/").partition("?")[0]
        self.asked[name] += 1
        self.headers[name] = dict(handler.headers)
        failure = self.failures.get(name, None)
        if failure is None:
            _, is_listed, query = handler.path.partition("&symbols=")
            asked = re.split("%22,%22|,", query) if is_listed else None
            if name in REFUSALS and self.delisted & set(asked or ()):
                failure = REFUSALS[name]
            else:
                headers = {"Content-Type": "application/json; charset=utf-8"}
                failure = Failure(body=self.body(name, asked), headers=headers)
        with contextlib.suppress(OSError):
            self._send(handler, failure)

    def _send(self, handler: BaseHTTPRequestHandler, failure: Failure) -> None:
        handler.close_connection = True
        if failure.is_cut:
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        handler.send_response(failure.status)
        for header, value in failure.headers.items():
            handler.send_header(header, value)
        if not failure.is_endless:
            handler.send_header("Content-Length", str(len(failure.body)))
        handler.end_headers()
        step = failure.piece_bytes or max(len(failure.body), 1)
        while not self._stopping.is_set():
            for start in range(0, len(failure.body), step):
                if self._stopping.wait(failure.pause_s):
                    return
                handler.wfile.write(failure.body[start : start + step])
            if not failure.is_endless:
                return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    peer: RateServer


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        cast("_Server", self.server).peer.answer(self)

    def log_message(self, *_: Any) -> None:
        pass


def _object(texts: dict[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(symbol)}:{text}" for symbol, text in texts.items()) + "}"


def _coinbase(texts: dict[str, str], _at: int) -> bytes:
    others = {"USD": '"1.0"', "USDC": '"1.0"', "00": '"15.6739811912225705"'}
    return f'{{"data":{{"currency":"USD","rates":{_object(texts | others)}}}}}'.encode()


def _kraken(texts: dict[str, str], _at: int) -> bytes:
    tickers = {
        pair: f'{{"a":["1","1","1.000"],"b":["1","1","1.000"],"c":[{text},"0.00067643"],"v":["4083.67","4412.73"],'
        '"t":[34619,38907],"o":"30502.80000"}'
        for pair, text in texts.items()
    }
    return f'{{"error":[],"result":{_object(tickers)}}}'.encode()


def _binance(texts: dict[str, str], _at: int) -> bytes:
    tickers = [f'{{"symbol":"{symbol}","price":{text}}}' for symbol, text in texts.items()]
    return f"[{','.join(tickers)}]".encode()


def _coingecko(texts: dict[str, str], at: int) -> bytes:
    return _object({coin: f'{{"usd":{text},"last_updated_at":{at}}}' for coin, text in texts.items()}).encode()


def _bitfinex(texts: dict[str, str], _at: int) -> bytes:
    rows = [f'["{symbol}",1,2,3,4,5,6,{text},8,9,10]' for symbol, text in texts.items()]
    return f"[{','.join(rows)}]".encode()


def _erapi(texts: dict[str, str], at: int) -> bytes:
    moments = f'"time_last_update_unix":{at},"time_next_update_unix":{at + 86400},"time_eol_unix":0'
    rates = _object({"USD": "1"} | texts)
    return (
        f'{{"result":"success","provider":"https://example.org",{moments},"base_code":"USD","rates":{rates}}}'.encode()
    )


def _ecb(texts: dict[str, str], at: int) -> bytes:
    euro = Decimal(texts["EUR"])
    foreign = {code: f"{euro / Decimal(text):.9f}" for code, text in texts.items() if code != "EUR"}
    cubes = "".join(f"<Cube currency='{code}' rate='{rate}'/>" for code, rate in [("USD", euro), *foreign.items()])
    day = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01"'
        ' xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">\n'
        "<gesmes:subject>Reference rates</gesmes:subject>\n"
        f"<Cube><Cube time='{day}'>{cubes}</Cube></Cube></gesmes:Envelope>"
    ).encode()


RENDERERS = {
    "coinbase": _coinbase,
    "kraken": _kraken,
    "binance": _binance,
    "coingecko": _coingecko,
    "bitfinex": _bitfinex,
    "erapi": _erapi,
    "ecb": _ecb,
}
