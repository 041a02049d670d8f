"""Machine-made requests against the description: whatever they say, the answer is one that is described."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.config import GenerationConfig, SchemathesisConfig
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from api.app import create_app
from api.endpoints import Endpoint
from api.http.middleware import raw_target
from api.routes import ENDPOINTS
from core.catalogue.catalogue import load_catalogue
from core.secrets.secretbox import SecretBox
from core.secrets.signing import sign_request
from models.rates.rates import store_network_fee
from tests.api.conftest import NOW, SECRET, Called, FakeCaller, FakeQueues, Keys, make_settings
from tests.api.rows import add_merchant

EXAMPLES = 25
A_DAY_S = 86_400
EXCLUDED = [
    # The merchant in front signs everything, so nothing can be learnt about what is not signed.
    checks.ignored_auth,
    # JSON Schema takes 88.0 for an integer and knows no "one of the two"; the gateway is stricter, and says so.
    checks.positive_data_acceptance,
]
# Where nothing is asked for, nothing can be asked for wrongly.
CASES = [
    (endpoint, mode)
    for endpoint in ENDPOINTS
    for mode in GenerationMode
    if mode.is_positive or endpoint.request or "{" in endpoint.path
]
RESULTS = {endpoint.actor.name: endpoint.examples["result"] for endpoint in ENDPOINTS if endpoint.actor}


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
        return self.app(env | signing | {"wsgi.input": io.BytesIO(body)}, start_response)  # type: ignore[no-any-return]


def result(called: Called) -> Any:
    return RESULTS[called.actor]


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def described(module_database: str, clock: Clock) -> Any:
    """The description and the application, which the tests share: the actors are played, and nothing is written."""
    del module_database
    settings = make_settings()
    keys = Keys(SecretBox(settings.secret_keys))
    keys.add("pk_unified", "unified", add_merchant())
    # Without a fee nothing can be reckoned, and a 5xx is taken for a defect.
    for currency, network in load_catalogue("development").pairs:
        store_network_fee(currency, network, 10**9)
    app = create_app(settings, caller=FakeCaller(result=result), queues=FakeQueues(), find_key=keys.find, now=clock)
    config = SchemathesisConfig()
    config.projects.default.generation = GenerationConfig(with_security_parameters=False, deterministic=True)
    return schemathesis.openapi.from_wsgi("/openapi.json", Signed(app, clock), config=config)


@pytest.fixture
def api_schema(described: Any, clock: Clock) -> Any:
    clock.now += A_DAY_S
    return described


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("endpoint", "mode"), CASES, ids=lambda value: getattr(value, "name", None))
def test_every_answer_is_one_that_is_described(api_schema: Any, endpoint: Endpoint, mode: GenerationMode) -> None:
    operation = api_schema[endpoint.path][endpoint.method]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    def check(case: Any) -> None:
        case.call_and_validate(excluded_checks=EXCLUDED)

    check()
