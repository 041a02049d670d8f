"""Machine-made requests by the OpenAPI document, through the real actors on PostgreSQL.

Every answer is one that the document describes, and never a server error.
"""

from __future__ import annotations

import copy
import io
import random
import re
import socket
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schemathesis.config import GenerationConfig, SchemathesisConfig
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from actors import context
from api.endpoints import Endpoint
from api.http.middleware import raw_target
from api.openapi.document import describe
from api.routes import ENDPOINTS
from core.catalogue.catalogue import load_catalogue
from core.secrets.secretbox import SecretBox
from core.secrets.signing import sign_request
from models.merchants import emails
from models.rates.rates import store_network_fee
from tests.api.conftest import BASE_URL, NOW, SECRET, FakeQueues, Keys, make_settings
from tests.api.live import Live, open_live
from tests.models.addresses.test_pool import PUBLIC_KEY, add_chunk
from tests.models.payouts.builders import fund

EXAMPLES: Final = 8
EXAMPLES_OF_A_SOAK: Final = 250
A_DAY_S: Final = 86_400
EXCLUDED: Final = [
    # The merchant in front signs everything, so nothing can be learnt about what is not signed.
    checks.ignored_auth,
    # JSON Schema takes 88.0 for an integer and knows no "one of the two"; the gateway is stricter, and says so.
    checks.positive_data_acceptance,
]
# Lists whose items the document describes by their type, though a malformed item is accepted and fails alone.
READ_ONE_BY_ONE: Final = {
    "createPaymentBatch": "payments",
    "createPayoutBatch": "payouts",
    "createRefundBatch": "refunds",
    "createPayouts": "payouts",
    "createPayoutLinks": "links",
}
# Where nothing is asked for, nothing can be asked for wrongly.
CASES: Final = [
    (endpoint, mode)
    for endpoint in ENDPOINTS
    for mode in GenerationMode
    if mode.is_positive or endpoint.request or "{" in endpoint.path
]
DOCUMENT: Final = describe(ENDPOINTS, base_url=BASE_URL)
# Fields of an answer that a later request can name, and path parameters with another name than their value's field.
LEARNT: Final = r"uuid|address|order_id|(link|batch|delivery|rule)_id|claim_token|txid"
CALLED_ELSEWHERE: Final = {"invoice_id": "uuid", "token": "claim_token"}
BAD_REQUEST: Final = 400
TOO_LARGE: Final = 413


class Clock:
    """The application's clock. A test that begins later has all of its rate limits."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class Signed:
    """A merchant in front of the application: signs whatever comes."""

    def __init__(self, app: Any, clock: Clock) -> None:
        self.app = app
        self.clock = clock

    def __call__(self, env: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = env["wsgi.input"].read(int(env.get("CONTENT_LENGTH") or 0))
        now = str(self.clock())
        signing = {
            "HTTP_X_PUBLIC_ID": "pk_unified",
            "HTTP_X_TIMESTAMP": now,
            "HTTP_X_SIGNATURE": sign_request(SECRET, now, env["REQUEST_METHOD"], raw_target(env), body),
        }
        # The machine reads no compressed bodies, though it asks for them.
        env.pop("HTTP_ACCEPT_ENCODING", None)
        return self.app(env | signing | {"wsgi.input": io.BytesIO(body)}, start_response)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def live(module_database: str, clock: Clock) -> Iterator[Live]:
    """A gateway that can do everything: with money, rates, fees, addresses and an endpoint. Its tests share it."""
    opened = open_live(Keys(SecretBox(make_settings().secret_keys)), FakeQueues(), module_database, now=clock)
    opened.configure(ADDRESS_PUBLIC_KEY=PUBLIC_KEY, SMTP_URL="smtp://127.0.0.1:1")
    for chunk in range(2, 20):
        add_chunk(chunk)
    for currency, network in load_catalogue("development").pairs:
        store_network_fee(currency, network, 10**15, gas_units=0)
        fund(opened.shop, 10**24, currency=currency)
    opened.webhook_endpoint(opened.shop)
    with pytest.MonkeyPatch.context() as patch:
        # The test webhook finds no receiver, and asks no name server for one.
        patch.setattr("socket.getaddrinfo", nobody)
        yield opened


def nobody(*_args: object, **_options: object) -> Any:
    raise socket.gaierror(socket.EAI_NONAME, "the tests know no names")


class Known:
    """Values that mean something to this gateway, by the field that takes them; answers bring further ones."""

    def __init__(self, live: Live) -> None:
        catalogue = load_catalogue("development")
        self.values: dict[str, list[Any]] = {
            "currency": [*catalogue.assets, "USD", "JPY"],
            "to_currency": [*catalogue.assets],
            "network": [*live.settings.rpc_urls],
            "address": ["0x8617E340B3D01FA5F11F306F4090FD50E238070D"],
            "recipient_merchant_id": [str(live.stranger)],
            "order_id": ["order-1", "order-2"],
        }

    def learn(self, answer: object) -> None:
        """Keep the identifiers and addresses of an answer."""
        for value in answer if isinstance(answer, list) else ():
            self.learn(value)
        for name, value in answer.items() if isinstance(answer, dict) else ():
            if isinstance(value, str) and value and re.fullmatch(LEARNT, name):
                self.values.setdefault(name, []).append(value)
            self.learn(value)

    def put(self, body: object, choices: Iterator[int]) -> object:
        """Return a body in which some of the fields have a known value."""
        if isinstance(body, list):
            return [self.put(item, choices) for item in body]
        if not isinstance(body, dict):
            return body
        return {name: self._chosen(name, next(choices)) or self.put(value, choices) for name, value in body.items()}

    def _chosen(self, name: str, choice: int) -> object:
        values = self.values.get(CALLED_ELSEWHERE.get(name, name))
        # Two of three fields: the third has what the machine made.
        return values[choice // 3 % len(values)] if values and choice % 3 else None


@pytest.fixture(scope="module")
def known(live: Live) -> Known:
    """The objects that exist before the first test."""
    return Known(live)


@pytest.fixture(scope="module")
def described(live: Live, clock: Clock) -> Any:
    """The description and the application, which the tests share."""
    config = SchemathesisConfig()
    config.projects.default.generation = GenerationConfig(with_security_parameters=False, deterministic=True)
    return schemathesis.openapi.from_wsgi("/openapi.json", Signed(live.client.app, clock), config=config)


@pytest.fixture
def api_schema(described: Any, clock: Clock) -> Any:
    clock.now += A_DAY_S
    # Each test begins with a process that sends none.
    emails.use(context.context().settings)
    return described


def takes(endpoint: Endpoint, body: object) -> bool:
    """Return whether a body is wrong in nothing but the items that are read one by one."""
    field = READ_ONE_BY_ONE.get(endpoint.name)
    if field is None or endpoint.request is None:
        return False
    schema = copy.deepcopy(DOCUMENT["components"]["schemas"][endpoint.request.__name__])
    del schema["properties"][field]["items"]
    return Draft202012Validator(schema | {"components": DOCUMENT["components"]}).is_valid(body)


def numbers(seed: int) -> Iterator[int]:
    made = random.Random(seed)  # noqa: S311  what is chosen is no secret
    while True:
        yield made.getrandbits(16)


def examine(api_schema: Any, known: Known, endpoint: Endpoint, mode: GenerationMode, *, examples: int) -> None:
    operation = api_schema[endpoint.path][endpoint.method]

    @given(case=operation.as_strategy(generation_mode=mode), seed=st.integers(0, 2**32))
    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    def check(case: Any, seed: int) -> None:
        excluded = EXCLUDED
        if mode.is_positive:
            choices = numbers(seed)
            case.body, case.path_parameters = known.put(case.body, choices), known.put(case.path_parameters, choices)
        elif takes(endpoint, case.body):
            excluded = [*EXCLUDED, checks.negative_data_rejection]
        answer = case.call()
        if answer.status_code == TOO_LARGE:
            # Said of the body's length, before anything is read of it.
            excluded = [*excluded, checks.negative_data_rejection]
        case.validate_response(answer, excluded_checks=excluded)
        if answer.status_code < BAD_REQUEST and endpoint.request is not None:
            known.learn(answer.json())

    check()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("endpoint", "mode"), CASES, ids=lambda value: getattr(value, "name", None))
def test_every_answer_is_described(api_schema: Any, known: Known, endpoint: Endpoint, mode: GenerationMode) -> None:
    examine(api_schema, known, endpoint, mode, examples=EXAMPLES)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("endpoint", "mode"), CASES, ids=lambda value: getattr(value, "name", None))
def test_every_answer_of_a_long_run_is_described(
    api_schema: Any, known: Known, endpoint: Endpoint, mode: GenerationMode
) -> None:
    examine(api_schema, known, endpoint, mode, examples=EXAMPLES_OF_A_SOAK)
