"""Generators of clients and linters read the description without a warning, and their clients make a payment."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from devstack.servers.npm import find_npm
from tests.api.conftest import NOW, SECRET
from tests.api.live import Live

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600), pytest.mark.enable_socket]

CACHE: Final = Path(__file__).parents[3] / ".sluice" / "cache"
PROGRAMS: Final = (
    "@redocly/cli@2.77.0",
    "@stoplight/spectral-cli@6.16.3",
    "openapi-typescript@7.13.0",
    "typescript@5.9.3",
)
GENERATOR: Final = "openapi-python-client==0.29.1"
FILES_MAX: Final = 350
# /healthz has no refusal.
REDOCLY: Final = "extends: [recommended]\nrules: {operation-4xx-response: off}\n"
SPECTRAL: Final = 'extends: ["spectral:oas"]\n'

SHOP: Final = """\
import hashlib, hmac, sys
import httpx
from client.api.payments import create_payment, get_payment
from client.client import Client
from client.models import CreatePayment, Error, PaymentLookup

def sign(request):
    parts = b"\\n".join((NOW.encode(), request.method.encode(), request.url.raw_path, request.content))
    request.headers.update({"X-Public-Id": "pk_unified", "X-Timestamp": NOW})
    request.headers["X-Signature"] = hmac.new(SECRET.encode(), parts, hashlib.sha256).hexdigest()

URL, NOW, SECRET = sys.argv[1:]
shop = Client(base_url=URL, httpx_args={"event_hooks": {"request": [sign]}})
made = create_payment.sync(client=shop, body=CreatePayment(amount="10", currency="USD", order_id="1"))
found = get_payment.sync(client=shop, body=PaymentLookup(uuid=made.result.uuid))
refused = create_payment.sync(client=shop, body=CreatePayment(amount="-1", currency="USD"))
assert isinstance(refused, Error)
print(found.result.order_id, found.result.payment_status.value, refused.error.code)
"""

TYPED: Final = """\
import type { components, paths } from "./api";
type Body = paths["/v1/payment"]["post"]["requestBody"]["content"]["application/json"];
const body: Body = { amount: "10", currency: "USD" };
const answer = {} as paths["/v1/payment"]["post"]["responses"]["200"]["content"]["application/json"];
const status: components["schemas"]["Payment"]["payment_status"] = answer.result.payment_status;
const refusal = {} as paths["/v1/payment"]["post"]["responses"]["400"]["content"]["application/json"];
const code: string = refusal.error.code;
export { body, status, code };
"""


class QuietHandler(WSGIRequestHandler):
    def log_message(self, *_args: Any) -> None:
        pass


@pytest.fixture
def url(live: Live) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, live.client.app, handler_class=QuietHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def document(live: Live, tmp_path: Path) -> Path:
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(live.client.simulate_get("/openapi.json").json), encoding="utf-8")
    return file


def run(*argv: str | Path, cwd: Path) -> str:
    """Run a program to its end, and return its output."""
    done = subprocess.run([str(each) for each in argv], cwd=cwd, env=os.environ, text=True, capture_output=True)  # noqa: PLW1510
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_linters_have_nothing_to_say_and_typescript_takes_the_types(document: Path, tmp_path: Path) -> None:
    npm = find_npm(os.environ, CACHE)
    run(*npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", *PROGRAMS, cwd=tmp_path)
    (tmp_path / "redocly.yaml").write_text(REDOCLY)
    (tmp_path / ".spectral.yaml").write_text(SPECTRAL)
    (tmp_path / "shop.ts").write_text(TYPED)
    programs = tmp_path / "node_modules" / ".bin"

    # It ends with 0 for warnings too, and warns of an old Node.js by itself.
    assert "Warning was generated" not in run(programs / "redocly", "lint", document, cwd=tmp_path)
    run(programs / "spectral", "lint", "--fail-severity=hint", document, cwd=tmp_path)
    run(programs / "openapi-typescript", document, "--output", "api.d.ts", cwd=tmp_path)
    run(programs / "tsc", "--noEmit", "--strict", "shop.ts", cwd=tmp_path)


def test_a_generated_client_makes_a_payment_and_reads_a_refusal(document: Path, tmp_path: Path, url: str) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", GENERATOR, cwd=tmp_path)
    generator = tmp_path / "venv" / "bin" / "openapi-python-client"
    run(generator, "generate", "--path", document, "--output-path", "client", "--meta", "none", cwd=tmp_path)
    (tmp_path / "shop.py").write_text(SHOP)

    output = run(python, "shop.py", url, str(NOW), SECRET, cwd=tmp_path)

    assert output.split() == ["1", "select", "payment.bad_amount"]
    assert len([*(tmp_path / "client").rglob("*.py")]) <= FILES_MAX
