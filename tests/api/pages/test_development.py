"""A developer pays by a click under the page. Production has neither the strip nor its route."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final
from uuid import UUID

import pytest
from falcon import testing

from api.app import create_app
from core.settings.settings import SettingsError
from models.db import base
from tests.api.conftest import Client, make_settings
from tests.api.live import Live, LocalCaller, later
from tests.api.pages.test_forms import FOREIGN, FORM, OURS
from tests.api.rows import ADDRESS, UNIT

Asked = list[tuple[str, dict[str, Any]]]
ACTS: Final = ("exact", "part", "over", "other", "expire")


class FakeDesk(BaseHTTPRequestHandler):
    asked: Asked
    status = 200

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, body))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"{}" if self.status == 200 else b"the chain is gone")

    def log_message(self, *_args: Any) -> None:
        pass


@pytest.fixture
def handler() -> type[FakeDesk]:
    return type("Handler", (FakeDesk,), {"asked": []})


@pytest.fixture
def desk(handler: type[FakeDesk]) -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/secret"
    server.shutdown()
    thread.join()
    server.server_close()


def developed(live: Live, desk: str) -> Client:
    """Return the gateway with a desk."""
    settings = make_settings(DATABASE_URL=live.settings.database_url, DEVELOPMENT_DESK_URL=desk)
    return Client(create_app(settings, caller=LocalCaller(), queues=live.queues, find_key=live.keys.find))


def click(client: Client, invoice_id: str, act: str, headers: dict[str, str] | None = None) -> testing.Result:
    sent = OURS if headers is None else headers
    return client.simulate_post(f"/dev/pay/{invoice_id}", body=f"act={act}", headers=FORM | sent)


def test_each_button_orders_its_transfer(live: Live, desk: str, handler: type[FakeDesk]) -> None:
    client, invoice_id = developed(live, desk), live.invoice(**later(), detected_units=5 * UNIT)
    page = client.simulate_get(f"/pay/{invoice_id}").text
    assert f'action="/dev/pay/{invoice_id}"' in page
    for act in ACTS:
        assert f'name="act" value="{act}"' in page
        answer = click(client, invoice_id, act)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/pay/{invoice_id}")

    paid = {"network": "ethereum", "currency": "USDT", "to": ADDRESS}
    assert handler.asked[:3] == [
        ("/secret/pay", paid | {"units": 120_000_000}),
        ("/secret/pay", paid | {"units": 50_000_000}),
        ("/secret/pay", paid | {"units": 187_500_000}),
    ]
    (_, other), (path, moved) = handler.asked[3:]
    assert (other["network"], other["to"]) == ("ethereum", ADDRESS)
    assert other["currency"] != "USDT"
    assert path == "/secret/advance"
    assert 3_500 < moved["seconds"] <= 3_601


def test_a_payment_without_a_coin_can_only_run_out(live: Live, desk: str, handler: type[FakeDesk]) -> None:
    client, invoice_id = developed(live, desk), live.agnostic()
    page = client.simulate_get(f"/pay/{invoice_id}").text
    assert 'value="expire"' in page
    assert 'value="exact"' not in page
    assert click(client, invoice_id, "exact").status_code == 400
    assert click(client, invoice_id, "nonsense").status_code == 400
    assert handler.asked == []


def test_a_desk_that_refuses_or_is_gone_is_shown(live: Live, desk: str, handler: type[FakeDesk]) -> None:
    invoice_id = live.invoice(**later())
    handler.status = 400
    refused = click(developed(live, desk), invoice_id, "exact")
    gone = click(developed(live, "http://127.0.0.1:1/secret"), invoice_id, "exact")
    for answer in (refused, gone):
        assert answer.status_code == 503
        assert 'class="error" role="alert"' in answer.text


@pytest.mark.parametrize("headers", FOREIGN)
def test_no_other_site_clicks(live: Live, desk: str, handler: type[FakeDesk], headers: dict[str, str]) -> None:
    assert click(developed(live, desk), live.invoice(**later()), "exact", headers).status_code == 403
    assert handler.asked == []


def test_an_unknown_payment_is_none(live: Live, desk: str, handler: type[FakeDesk]) -> None:
    client = developed(live, desk)
    assert click(client, str(UUID(int=7)), "exact").status_code == 404
    assert click(client, "x", "exact").status_code == 400
    assert handler.asked == []


PRODUCTION: Final = {
    "ENVIRONMENT": "production",
    "SECRET_KEYS": "a:" + "QUFB" * 10 + "QUE=",
    "RATES_SOURCE": "live",
    "SINGLE_PROVIDER_OK": "1",
}


def test_production_has_neither_the_strip_nor_the_route(live: Live) -> None:
    invoice_id = live.invoice(**later())
    with pytest.raises(SettingsError, match="DEVELOPMENT_DESK_URL: production refuses it"):
        make_settings(**PRODUCTION, DEVELOPMENT_DESK_URL="http://127.0.0.1:1/secret")
    settings = make_settings(**PRODUCTION, DATABASE_URL=live.settings.database_url)
    app = create_app(settings, caller=LocalCaller(), queues=live.queues, find_key=live.keys.find)
    for client in (live.client, Client(app)):
        text = client.simulate_get(f"/pay/{invoice_id}").text
        assert "strip" not in text
        assert "/dev/" not in text
        for act in ACTS:
            assert click(client, invoice_id, act).status_code == 404
    assert base.rows("SELECT 1 FROM deposits") == []
