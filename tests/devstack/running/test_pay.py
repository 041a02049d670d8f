"""`sluice dev pay` sends what is missing, and answers each mistake with its remedy. The API and the desk are played."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from devstack.running import asking, pay
from tests.cli.conftest import CommandLine, Outcome
from tests.devstack.running.conftest import ENV, Folder

NUMBER = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
OTHER = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4e"
ADDRESS = "0x8617E340B3D01FA5F11F306F4090FD50E238070D"
PAYMENT = {
    "uuid": NUMBER, "payment_status": "check", "payer_currency": "USDT", "network": "ethereum", "address": ADDRESS,
    "amount_remaining": "25.5", "url": f"{ENV['PAY_URL']}/pay/{NUMBER}",
}  # fmt: skip
OPEN = PAYMENT | {
    "payment_status": "select", "payer_currency": "", "network": "", "address": "", "amount_remaining": "",
    "accepted": [{"currency": "ETH", "network": "ethereum"}, {"currency": "USDT", "network": "ethereum"}],
}  # fmt: skip


class Gateway:
    """Plays a stack's API and desk."""

    def __init__(self) -> None:
        self.payment: dict[str, Any] = dict(PAYMENT)
        self.sent: list[dict[str, Any]] = []
        self.desk_says: tuple[int, dict[str, Any]] | None = None

    def send(self, method: str, url: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        if url == f"{ENV['DEVELOPMENT_DESK_URL']}/pay":
            assert body is not None
            self.sent.append(body)
            return self.desk_says or (200, {"txid": f"0x{len(self.sent)}"})
        if url == f"{ENV['BASE_URL']}/v1/pay/{NUMBER}/select":
            assert body is not None
            self.payment = PAYMENT | {"payer_currency": body["currency"], "network": body["network"]}
            return 200, {"state": 0, "result": self.payment}
        if (method, url) == ("GET", f"{ENV['BASE_URL']}/v1/pay/{NUMBER}"):
            return 200, {"state": 0, "result": self.payment}
        return 404, {"state": 1, "error": {"message": "There is no such payment."}}


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Gateway:
    made = Gateway()
    monkeypatch.setattr(asking, "_send", made.send)
    return made


@pytest.fixture
def dev(sluice: CommandLine, folder: Folder, gateway: Gateway) -> Any:
    del gateway

    def call(*words: str) -> Outcome:
        return sluice("dev", "--data", str(folder.path), "pay", *words)

    sluice.env = {}
    return call


@pytest.mark.parametrize(
    "name",
    [NUMBER, NUMBER.upper(), PAYMENT["url"], f"{PAYMENT['url']}?lang=de", f"http://localhost:8000/pay/{NUMBER}/"],
)
def test_a_number_or_the_address_of_its_page_pays_what_is_missing(dev: Any, gateway: Gateway, name: str) -> None:
    outcome = dev(name, "--json")
    assert outcome.json["txids"] == ["0x1"]
    assert gateway.sent == [{"network": "ethereum", "currency": "USDT", "to": ADDRESS, "units": 25_500_000}]


def test_an_amount_is_sent_as_often_as_asked(dev: Any, gateway: Gateway) -> None:
    outcome = dev(NUMBER, "--amount", "1.5", "--times", "3")
    assert [order["units"] for order in gateway.sent] == [1_500_000] * 3
    assert outcome.out.splitlines()[2] == f"sent 1.5 USDT on ethereum to {ADDRESS}: transaction 0x3"
    assert outcome.out.splitlines()[-1] == f"page: {PAYMENT['url']}"


def test_a_part_that_the_network_cannot_send_is_rounded_up(dev: Any, gateway: Gateway) -> None:
    gateway.payment["amount_remaining"] = "0.0000001"
    assert dev(NUMBER).code == 0
    assert gateway.sent[0]["units"] == 1


@pytest.mark.parametrize(
    ("words", "coin"),
    [((), "ETH"), (("--coin", "USDT"), "USDT"), (("--network", "ethereum"), "ETH"),
     (("--coin", "USDT", "--network", "ethereum"), "USDT")],
)  # fmt: skip
def test_a_coin_is_chosen_as_the_buyer_would(dev: Any, gateway: Gateway, words: tuple[str, ...], coin: str) -> None:
    gateway.payment = dict(OPEN)
    assert dev(NUMBER, *words).code == 0
    assert [order["currency"] for order in gateway.sent] == [coin]


def test_another_coin_goes_to_the_same_address_if_its_amount_is_named(dev: Any, gateway: Gateway) -> None:
    assert dev(NUMBER, "--coin", "ETH", "--amount", "0.5").code == 0
    assert gateway.sent == [{"network": "ethereum", "currency": "ETH", "to": ADDRESS, "units": 5 * 10**17}]


@pytest.mark.parametrize("status", ["paid", "paid_over", "expired", "wrong_amount"])
def test_an_ended_payment_takes_a_named_amount_alone(dev: Any, gateway: Gateway, status: str) -> None:
    gateway.payment["payment_status"] = status
    assert dev(NUMBER).code == 1
    assert gateway.sent == []
    assert dev(NUMBER, "--amount", "1").code == 0
    assert len(gateway.sent) == 1


@pytest.mark.parametrize(
    ("payment", "words", "line"),
    [
        (PAYMENT | {"payment_status": "paid"}, [NUMBER], "the payment is paid: --amount sends"),
        (PAYMENT | {"payment_status": "expired"}, [NUMBER], "the payment is expired: --amount sends"),
        (OPEN | {"payment_status": "expired"}, [NUMBER], "is expired, without an address: make another"),
        (PAYMENT | {"amount_remaining": "0"}, [NUMBER], "misses nothing, and waits for confirmations"),
        (PAYMENT | {"amount_remaining": ""}, [NUMBER], "misses nothing"),
        (OPEN | {"accepted": []}, [NUMBER], "it offers nothing"),
        (OPEN, [NUMBER, "--coin", "TRX"], "offers no TRX on any network; it offers ETH on ethereum, USDT on ethereum"),
        (OPEN, [NUMBER, "--network", "tron"], "offers no coin on tron"),
        (PAYMENT | {"network": "bsc"}, [NUMBER], "does not run bsc: start it with --networks ethereum,bsc"),
        (PAYMENT, [NUMBER, "--network", "tron"], "does not run tron: start it with --networks ethereum,tron"),
        (PAYMENT, [NUMBER, "--coin", "DOGE"], "there is no DOGE on ethereum"),
        (PAYMENT, [NUMBER, "--network", "nowhere"], "there is no USDT on nowhere"),
        (PAYMENT, [NUMBER, "--coin", "ETH"], "name an amount by --amount"),
        (PAYMENT, [NUMBER, "--amount", "1,5"], "amount must be a decimal string with at most 6"),
        (PAYMENT, [NUMBER, "--amount", "0.0000001"], "amount must be a decimal string with at most 6"),
        (PAYMENT, [NUMBER, "--amount", "-1"], "amount must be a decimal string"),
        (PAYMENT, [NUMBER, "--amount", "0"], "the amount is 0"),
        (PAYMENT, [OTHER], f"this stack has no payment {OTHER}; another stack's needs --data"),
        (PAYMENT, [f"http://127.0.0.1:8001/pay/{NUMBER}"], "is not this stack's, which serves http://127.0.0.1:8000"),
        (PAYMENT, [f"https://pay.example.com/pay/{NUMBER}"], "is not this stack's"),
        (PAYMENT, [f"http://127.0.0.1:8000/link/{NUMBER}"], "is no page of a payment"),
        (PAYMENT, ["http://127.0.0.1:8000"], "is no page of a payment"),
        (PAYMENT, ["http://127.0.0.1:80000/pay/x"], "is no page of a payment"),
        (PAYMENT, ["http://[/pay/x"], "is no page of a payment"),
    ],
)
def test_a_mistake_is_a_line_with_a_remedy_and_moves_nothing(
    dev: Any, gateway: Gateway, payment: dict[str, Any], words: list[str], line: str
) -> None:
    gateway.payment = dict(payment)
    outcome = dev(*words)
    assert (outcome.code, gateway.sent) == (1, [])
    assert line in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_an_address_of_another_family_is_refused(dev: Any, folder: Folder, gateway: Gateway) -> None:
    folder.ready["rpc"]["tron"] = "http://127.0.0.1:2"
    folder.write()
    outcome = dev(NUMBER, "--network", "tron", "--amount", "1")
    assert (outcome.code, gateway.sent) == (1, [])
    assert "tron has no address 0x8617" in outcome.err


@pytest.mark.parametrize("times", ["0", "-1", "101", "x"])
def test_a_number_of_payments_has_bounds(dev: Any, gateway: Gateway, times: str) -> None:
    assert (dev(NUMBER, "--times", times).code, gateway.sent) == (2, [])


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([], "no payment of this stack has the order_id order-1"),
        ([(NUMBER, "A"), (OTHER, "B")], "2 merchants have an order order-1: name the payment by its number"),
    ],
)
def test_an_order_that_names_no_one_payment_is_refused(
    dev: Any, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[str, str]], line: str
) -> None:
    monkeypatch.setattr(pay, "_database", _nothing)
    monkeypatch.setattr(pay.base, "rows", lambda *_: rows)
    assert line in dev("order-1").err


@contextlib.contextmanager
def _nothing(_stack: object) -> Iterator[None]:
    yield


def test_a_desk_that_refuses_is_quoted_without_its_control_characters(dev: Any, gateway: Gateway) -> None:
    gateway.desk_says = (400, {"error": "ProviderError: no \x1b[2Jcoin"})
    outcome = dev(NUMBER)
    assert outcome.code == 1
    assert "could not do it: ProviderError: no \\x1b[2Jcoin" in outcome.err


@pytest.mark.parametrize("raw", [b"<html>", b"[]", None])
def test_a_stack_that_does_not_answer_is_reported_in_a_line(
    sluice: CommandLine, folder: Folder, monkeypatch: pytest.MonkeyPatch, raw: bytes | None
) -> None:
    def answer(*_: object, **__: object) -> Any:
        if raw is None:
            raise urllib3.exceptions.ProtocolError("gone")
        return urllib3.HTTPResponse(raw, status=502)

    monkeypatch.setattr(asking.urllib3, "request", answer)
    sluice.env = {}
    outcome = sluice("dev", "pay", NUMBER, "--data", str(folder.path))
    assert (outcome.code, len(outcome.err.splitlines())) == (1, 1)


def test_the_clock_is_the_desks(sluice: CommandLine, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[object] = []
    monkeypatch.setattr(asking, "_send", lambda *sent: orders.append(sent) or (200, {}))
    sluice.env = {}
    assert sluice("dev", "clock", "1h30m", "--data", str(folder.path)).out == "the stack's clocks are 5400 s further\n"
    assert orders == [("POST", f"{ENV['DEVELOPMENT_DESK_URL']}/advance", {"seconds": 5400})]
    assert sluice("dev", "clock", "yesterday", "--data", str(folder.path)).code == 2
