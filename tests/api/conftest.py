"""An application whose actors are played by the test, and merchants' keys that need no database."""

from __future__ import annotations

import builtins
import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from falcon import testing
from falcon.routing import compiled

from actors.queue.broker import Backlog
from actors.queue.caller import CallInfo, CallReply
from api.app import create_app
from api.availability import Usable
from api.endpoints import Endpoint
from core.catalogue.catalogue import Catalogue
from core.ids import uuid7
from core.rates.pricing import Market
from core.secrets.secretbox import SecretBox
from core.secrets.signing import sign_request
from core.settings.settings import Settings, load_settings
from models.db.base import StoreUnavailableError
from models.merchants.rows import ApiKeyRow, KeyKind
from models.rates.rates import load_market

if TYPE_CHECKING:
    from tests.api.live import Live

NOW = 1_764_000_000
SECRET = "sk_test"
BASE_URL = "https://api.sluice.example"

# The router writes and compiles one function for all routes, for each of some 1,500 applications that tests make.
compiled.compile = functools.cache(builtins.compile)  # type: ignore[attr-defined]


@dataclass
class Called:
    actor: str
    queue: str
    info: CallInfo
    payload: Any
    wait_s: float | None = None


@dataclass
class FakeCaller:
    """Plays the actors: answers, or refuses with, whatever the test says."""

    result: Any = field(default_factory=dict)
    error: Exception | None = None
    replayed: bool = False
    calls: list[Called] = field(default_factory=list)

    def call(self, actor: str, *, queue: str, info: CallInfo, payload: bytes, wait_s: float | None = None) -> CallReply:
        self.calls.append(Called(actor, queue, info, json.loads(payload), wait_s))
        if self.error is not None:
            raise self.error
        result = self.result(self.calls[-1]) if callable(self.result) else self.result
        return CallReply(body=json.dumps(result).encode(), replayed=self.replayed)

    @property
    def last(self) -> Called:
        return self.calls[-1]


@dataclass
class FakeSigns:
    unserved: set[str] = field(default_factory=set)
    age_s: float | None = 1.0
    is_flushed: bool = False
    configured: int = 0
    connections_max: int = 33

    def consumers(self, queue_name: str) -> int:
        return 0 if queue_name in self.unserved else 1

    def tick_age_s(self) -> float | None:
        return self.age_s

    def is_new(self) -> bool:
        return self.is_flushed

    def connections(self) -> int:
        return self.configured

    def note_connections(self) -> None:
        self.configured = max(self.configured, self.connections_max)


@dataclass
class FakeQueues:
    error: Exception | None = None
    heartbeats: FakeSigns = field(default_factory=FakeSigns)

    def ping(self) -> None:
        if self.error is not None:
            raise self.error

    def backlog(self, queue_name: str) -> Backlog:
        if self.error is not None:
            raise self.error
        return Backlog(waiting=len(queue_name), oldest_ms=1500)


@dataclass
class Keys:
    """The keys that exist, as api asks models.merchants.rows for them."""

    box: SecretBox
    rows: dict[str, ApiKeyRow] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    error: Exception | None = None

    def add(self, public_id: str, kind: KeyKind = "unified", merchant_id: UUID | None = None) -> ApiKeyRow:
        sealed = self.box.seal(SECRET.encode(), bound_to=f"api_key:{public_id}")
        key = ApiKeyRow(
            id=uuid7(), public_id=public_id, merchant_id=merchant_id or uuid7(), kind=kind, secret_box=sealed
        )
        row = key.but(ip_allowlist=[])
        self.rows[public_id] = row
        return row

    def find(self, public_id: str) -> ApiKeyRow | None:
        self.asked.append(public_id)
        if self.error is not None:
            raise self.error
        return self.rows.get(public_id)


class Client(testing.TestClient):
    """Signs like a merchant; `raw` sends bytes as they are."""

    public_id = "pk_unified"

    def signed(
        self,
        path: str,
        body: bytes,
        *,
        method: str = "POST",
        public_id: str | None = None,
        timestamp: str = str(NOW),
        headers: dict[str, str] | None = None,
        source: str = "127.0.0.1",
    ) -> testing.Result:
        signing = {
            "Content-Type": "application/json",
            "X-Public-Id": public_id or self.public_id,
            "X-Timestamp": timestamp,
            "X-Signature": sign_request(SECRET, timestamp, method, path, body),
        }
        target, _, query = path.partition("?")
        return self.simulate_request(
            method,
            target,
            query_string=query or None,
            body=body,
            headers=signing | (headers or {}),
            remote_addr=source,
        )

    def post(self, path: str, body: object, **options: Any) -> testing.Result:
        return self.signed(path, json.dumps(body).encode(), **options)

    def public_post(self, path: str, body: object) -> testing.Result:
        return self.simulate_post(path, body=json.dumps(body), headers={"Content-Type": "application/json"})


def path_of(endpoint: Endpoint, value: str = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d") -> str:
    """Return an endpoint's path with a value in each of its places; a token has a form of its own."""
    return re.sub(r"\{\w+\}", value, endpoint.path.replace("{token}", "A" * 43))


def code_of(answer: testing.Result) -> str:
    """Return the code of an error, having checked the envelope's exact shape."""
    body = answer.json
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message"}
    assert body["error"]["message"]
    assert answer.headers["content-type"] == "application/json"
    return str(body["error"]["code"])


def message_of(answer: testing.Result) -> str:
    return str(answer.json["error"]["message"])


def make_settings(**env: str) -> Settings:
    return load_settings(
        {
            "ENVIRONMENT": "development",
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
            "REDIS_URL": "redis://127.0.0.1:1",
            "BASE_URL": BASE_URL,
            "PAY_URL": "https://pay.sluice.example",
            "ETHEREUM_RPC_URLS": "http://127.0.0.1:1",
            "BSC_RPC_URLS": "http://127.0.0.1:1",
        }
        | env,
        role="web",
    )


def all_usable(catalogue: Catalogue, served: frozenset[str], *, fee_max_percent: int = 0) -> Usable:  # noqa: ARG001
    """Return every method of the served networks as usable, as PostgreSQL would while all is well."""
    methods = frozenset(method for method in catalogue.pairs if method[1] in served)
    try:
        market = load_market()
    except StoreUnavailableError:
        # Most tests have no database.
        market = Market(rates={}, network_fees={})
    return Usable(payments=methods, payouts=methods, market=market)


@pytest.fixture
def settings() -> Settings:
    return make_settings()


@pytest.fixture
def caller() -> FakeCaller:
    return FakeCaller()


@pytest.fixture
def queues() -> FakeQueues:
    return FakeQueues()


@pytest.fixture
def keys(settings: Settings) -> Keys:
    made = Keys(SecretBox(settings.secret_keys))
    made.add("pk_unified")
    made.add("pk_payment", "payment")
    made.add("pk_payout", "payout")
    return made


@pytest.fixture
def client(settings: Settings, caller: FakeCaller, queues: FakeQueues, keys: Keys) -> Client:
    app = create_app(
        settings,
        caller=caller,
        queues=queues,
        find_key=keys.find,
        read_usable=all_usable,
        now=lambda: NOW,
    )
    return Client(app)


@pytest.fixture
def make_client(caller: FakeCaller, queues: FakeQueues, keys: Keys) -> Callable[..., Client]:
    def make(**env: str) -> Client:
        return Client(
            create_app(
                make_settings(**env),
                caller=caller,
                queues=queues,
                find_key=keys.find,
                read_usable=all_usable,
                now=lambda: NOW,
            )
        )

    return make


@pytest.fixture
def live(keys: Keys, queues: FakeQueues, database: str) -> Live:
    """A gateway with its real actors."""
    from tests.api.live import open_live  # noqa: PLC0415  most tests need no actors

    return open_live(keys, queues, database)
