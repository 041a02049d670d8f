"""Callers that send too many requests learn when to come back, in a form of its own, with and without Redis."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any

import pytest
from falcon import testing

from actors.queue.link import LinkDownError, RedisLink
from api.app import create_app
from api.limits import limits
from api.limits.limits import Limiter, LimitName, limits_of
from api.limits.sources import Source, source_of
from api.limits.windows import Window
from api.routes import ENDPOINTS
from core.errors import TooManyRequestsError
from core.settings.settings import Settings
from models.db import base
from tests.api.conftest import NOW, Client, FakeCaller, FakeQueues, Keys, code_of, make_settings, path_of
from tests.api.rows import add_invoice, add_merchant

GOOD = {"amount": "10", "currency": "USD"}
CHOICE = {"currency": "USDT", "network": "ethereum"}
INVOICE = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
SELECT = f"/v1/pay/{INVOICE}/select"
PAGE = f"/pay/{INVOICE}"
LOW = {
    "RATE_LIMIT_KEY_MINUTE": "3",
    "RATE_LIMIT_KEY_SECOND": "3",
    "RATE_LIMIT_PUBLIC_MINUTE": "3",
    "RATE_LIMIT_BUYER_MINUTE": "2",
    "RATE_LIMIT_LINK_HOUR": "3",
    "RATE_LIMIT_CLAIM_MINUTE": "2",
    "RATE_LIMIT_ANONYMOUS_MINUTE": "3",
}
MINUTE = ((60_000, 10),)


@pytest.fixture
def low(make_client: Callable[..., Client]) -> Client:
    """A gateway that lets 3 requests pass, and 2 choices or claims."""
    return make_client(**LOW)


def assert_refused(answer: testing.Result) -> None:
    """Check the exact shape of a refusal."""
    assert answer.status_code == 429
    assert set(answer.json) == {"state", "message"}
    assert answer.json["state"] == 1
    assert answer.json["message"]
    assert 1 <= int(answer.headers["retry-after"]) <= 120
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert uuid.UUID(answer.headers["x-request-id"])


# Over HTTP ----------------------------------------------------------------------------------------------------------


def test_production_has_the_documented_limits_and_development_very_high_ones() -> None:
    defaults = {name: Settings.model_fields[name.lower()].default for name in LOW}
    assert limits_of(make_settings(**{name: str(most) for name, most in defaults.items()})) == {
        "key": ((60_000, 600), (1_000, 100)),
        "public": ((60_000, 120),),
        "buyer": ((60_000, 20),),
        "link": ((3_600_000, 40),),
        "claim": ((60_000, 20),),
        "unproved": ((60_000, 120),),
        "unknown": ((60_000, 120),),
        "ready": ((60_000, 1200),),
        "anonymous": ((60_000, 1200),),
    }
    assert min(most for limit in limits_of(make_settings()).values() for _, most in limit) >= 1_000_000


def test_a_key_past_its_limit_is_refused_in_a_shape_without_an_error_object(low: Client, caller: FakeCaller) -> None:
    answers = [low.post("/v1/payment", GOOD) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert_refused(answers[-1])
    assert len(caller.calls) == 3


def test_each_key_has_a_limit_of_its_own_over_all_endpoints(low: Client) -> None:
    for path, body in (("/v1/payment", GOOD), ("/v1/webhooks", {"url": "https://shop.example"}), ("/v1/payment", {})):
        assert low.post(path, body).status_code != 429

    assert low.post("/v1/payment/info", {"order_id": "x"}).status_code == 429
    assert low.post("/v1/payment", GOOD, public_id="pk_payment").status_code == 200


def test_a_forged_request_does_not_use_up_the_limit_of_a_key(low: Client) -> None:
    for _ in range(3):
        low.post("/v1/payment", GOOD, headers={"X-Signature": "0" * 64})

    assert low.post("/v1/payment", GOOD).status_code == 200


def test_a_flood_of_bad_signatures_is_limited_by_its_source(low: Client, keys: Keys) -> None:
    def forged(source: str, **headers: str) -> testing.Result:
        return low.simulate_post(
            "/v1/payment",
            body=b"{}",
            headers={"Content-Type": "application/json", "X-Timestamp": str(NOW)} | headers,
            remote_addr=source,
        )

    codes = [code_of(forged("198.51.100.1", **{"X-Public-Id": name})) for name in ("pk_unified", "pk_none", "")]
    assert codes == ["merchant.bad_signature", "merchant.unknown_key", "merchant.unknown_key"]
    assert_refused(forged("198.51.100.1"))
    assert_refused(forged("198.51.100.1", **{"X-Timestamp": "now"}))
    assert forged("198.51.100.2").status_code == 401
    assert "pk_unified" in keys.asked


def test_a_caller_that_shares_an_address_with_a_guesser_can_still_sign(low: Client) -> None:
    for _ in range(5):
        low.post("/v1/payment", GOOD, headers={"X-Signature": "0" * 64})

    assert low.post("/v1/payment", GOOD).status_code == 200


@pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if e.limit], ids=lambda e: e.name)
@pytest.mark.usefixtures("database")
def test_public_endpoints_are_limited_by_source_address(low: Client, endpoint: Any) -> None:
    def ask(source: str) -> testing.Result:
        body = {"json": endpoint.examples["request"]} if endpoint.request else {}
        return low.simulate_request(endpoint.method, path_of(endpoint), remote_addr=source, **body)

    allowed = 2 if endpoint.limit in {"buyer", "claim"} else 3
    assert all(ask("198.51.100.1").status_code != 429 for _ in range(allowed))
    refused = ask("198.51.100.1")
    assert_refused(refused)
    if endpoint.cors:
        assert refused.headers["access-control-allow-origin"] == "*", "a page of another origin may read it"
        assert "Retry-After" in refused.headers["access-control-expose-headers"]
    assert ask("198.51.100.2").status_code != 429


def paying(client: Client, invoice: str, source: str = "198.51.100.1") -> list[int]:
    """Return what a buyer is answered who opens the page, looks at the payment, and looks again."""
    paths = (f"/pay/{invoice}", f"/v1/pay/{invoice}", f"/v1/pay/{invoice}")
    return [client.simulate_get(path, remote_addr=source).status_code for path in paths]


@pytest.mark.usefixtures("database")
def test_thirty_buyers_behind_one_address_pay_undisturbed(low: Client) -> None:
    shop = add_merchant("Shop")

    for _ in range(30):
        invoice = str(add_invoice(shop, status="select"))
        assert paying(low, invoice) == [200, 200, 200]
        chosen = low.simulate_post(f"/v1/pay/{invoice}/select", json=CHOICE, remote_addr="198.51.100.1")
        assert chosen.status_code == 200


@pytest.mark.usefixtures("database")
def test_a_payment_page_is_limited_by_payment_and_source(low: Client) -> None:
    invoice = str(add_invoice(add_merchant("Shop")))
    assert paying(low, invoice) == [200, 200, 200]

    assert paying(low, invoice) == [429, 429, 429]
    # Another spelling of the id is the same payment.
    assert paying(low, invoice.upper()) == [429, 429, 429]
    assert paying(low, invoice, source="198.51.100.2") == [200, 200, 200]


@pytest.mark.usefixtures("database")
def test_guesses_of_payments_are_limited_by_source(low: Client) -> None:
    def guess(source: str = "198.51.100.1") -> list[int]:
        guessed = uuid.uuid4()
        return [low.simulate_get(f"{at}{guessed}", remote_addr=source).status_code for at in ("/pay/", "/v1/pay/")]

    assert [guess(), guess(), guess()] == [[404, 404], [404, 429], [429, 429]]
    assert guess("198.51.100.2") == [404, 404]
    assert paying(low, "no-uuid") == [400, 400, 400]
    assert paying(low, "no-uuid")[1:] == [429, 429]


@pytest.mark.usefixtures("database")
def test_a_missing_page_is_not_looked_up_past_the_limit(low: Client) -> None:
    for _ in range(3):
        low.simulate_get(f"/v1/pay/{uuid.uuid4()}")

    base.execute("ALTER TABLE invoices RENAME TO gone")
    assert_refused(low.simulate_get(f"/v1/pay/{uuid.uuid4()}"))


def test_one_address_cannot_use_up_the_sales_of_a_link(make_client: Callable[..., Client]) -> None:
    client = make_client(RATE_LIMIT_LINK_HOUR="2")
    link, other = (str(uuid.uuid4()) for _ in range(2))

    def check_out(link_id: str, source: str = "198.51.100.1") -> testing.Result:
        return client.simulate_post(f"/v1/link/{link_id}/checkout", json={}, remote_addr=source)

    assert [check_out(link).status_code for _ in range(3)] == [200, 200, 429]
    assert int(check_out(link).headers["Retry-After"]) > 120, "the hour has to pass"
    assert (check_out(other).status_code, check_out(link, "198.51.100.2").status_code) == (200, 200)
    assert client.simulate_post(SELECT, json=CHOICE, remote_addr="198.51.100.1").status_code == 200
    # A text that is no link's id has no counter.
    assert [code_of(check_out("x")) for _ in range(3)] == ["paylink.bad_id"] * 3


def test_one_address_fills_a_small_part_of_a_link_s_cap() -> None:
    fields = Settings.model_fields
    assert fields["payment_link_unpaid_max"].default >= 5 * fields["rate_limit_link_hour"].default


def test_every_public_endpoint_but_health_and_metrics_is_limited() -> None:
    assert {e.path for e in ENDPOINTS if e.rights is None and e.limit is None} == {"/healthz", "/metrics"}
    assert not [e.name for e in ENDPOINTS if e.rights is not None and e.limit is not None]


def test_choosing_has_a_smaller_limit_than_reading_and_does_not_use_that_up(low: Client) -> None:
    for _ in range(2):
        assert low.public_post(SELECT, CHOICE).status_code == 200

    assert_refused(low.public_post(SELECT, CHOICE))
    assert low.simulate_get("/v1/currencies").status_code == 200


@pytest.mark.usefixtures("database")
def test_the_page_past_the_limit_is_a_page_for_a_browser_and_the_shape_for_a_program(low: Client) -> None:
    for _ in range(3):
        assert low.simulate_get(PAGE).status_code == 404

    program, browser = low.simulate_get(PAGE), low.simulate_get(PAGE, headers={"Accept": "text/html,*/*;q=0.8"})
    assert_refused(program)
    assert (browser.status_code, browser.headers["content-type"]) == (429, "text/html; charset=utf-8")
    assert browser.headers["retry-after"] == program.headers["retry-after"]
    assert "<h1>Please reload this page in" in browser.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/", 404),
        ("GET", "//v1/payment", 404),
        ("GET", "/v1/payment", 405),
        ("OPTIONS", "/v1/currencies", 204),
        ("GET", "/static/pages.css", 200),
    ],
)
def test_anonymous_requests_of_every_kind_are_limited_by_source(
    low: Client, method: str, path: str, status: int
) -> None:
    def ask(source: str = "198.51.100.1") -> testing.Result:
        return low.simulate_request(method, path, remote_addr=source)

    assert [ask().status_code for _ in range(3)] == [status] * 3
    assert_refused(ask())
    assert ask("198.51.100.2").status_code == status
    # Operators and buyers behind the same address go on.
    asked = [low.simulate_get(other, remote_addr="198.51.100.1").status_code for other in ("/readyz", "/v1/currencies")]
    assert 429 not in asked


def test_health_is_never_limited(low: Client) -> None:
    assert {low.simulate_get("/healthz").status_code for _ in range(10)} == {200}


def test_the_source_comes_from_trusted_proxies(make_client: Callable[..., Client]) -> None:
    def ask(client: Client, source: str, forwarded_for: str) -> int:
        headers = {"X-Forwarded-For": forwarded_for}
        return client.simulate_get("/v1/currencies", remote_addr=source, headers=headers).status_code

    behind = make_client(**LOW, TRUSTED_PROXIES="10.0.0.0/8")
    assert [ask(behind, "10.0.0.1", f"198.51.100.{n}") for n in range(5)] == [200] * 5
    spoofed = make_client(**LOW, TRUSTED_PROXIES="10.0.0.0/8")
    assert [ask(spoofed, "203.0.113.1", f"198.51.100.{n}") for n in range(4)] == [200, 200, 200, 429]


def test_a_refusal_is_described() -> None:
    from api.openapi.document import describe  # noqa: PLC0415  one test needs it

    for path, methods in describe(ENDPOINTS, base_url="https://x")["paths"].items():
        for operation in methods.values():
            limited = path != "/healthz"
            assert ("429" in operation["responses"]) is limited


# Windows ------------------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_764_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make(clock: Clock, link: Any = None, limit: Any = MINUTE) -> Limiter:
    names: tuple[LimitName, ...] = ("key", "public", "buyer", "link", "claim", "unproved", "unknown")
    return Limiter(dict.fromkeys(names, limit), link=link, namespace="t", now=clock)


def passed(limiter: Limiter, requests: int, who: str = "me") -> int:
    count = 0
    for _ in range(requests):
        try:
            limiter.admit_key(who)
            count += 1
        except TooManyRequestsError:
            pass
    return count


def wait_s(limiter: Limiter, who: str = "me") -> int:
    with pytest.raises(TooManyRequestsError) as refusal:
        limiter.admit_key(who)
    return refusal.value.retry_after_s


def test_a_limit_is_kept_exactly_and_refusals_do_not_count(clock: Clock) -> None:
    limiter = make(clock)

    assert passed(limiter, 50) == 10
    clock.now_s += 120
    assert passed(limiter, 50) == 10


@pytest.mark.parametrize("start_s", [0.0, 10.0, 59.9])
@pytest.mark.parametrize("step_s", [0.05, 0.7, 5.9, 13.0])
def test_a_caller_that_waits_for_retry_after_is_admitted(clock: Clock, start_s: float, step_s: float) -> None:
    limiter = make(clock)
    clock.now_s += start_s
    for _ in range(40):
        clock.now_s += step_s
        try:
            limiter.admit_key("me")
        except TooManyRequestsError as refusal:
            clock.now_s += refusal.retry_after_s
            limiter.admit_key("me")


@pytest.mark.parametrize("step_s", [0.3, 1.7, 5.0])
def test_no_minute_sees_many_more_than_the_limit_however_windows_fall(clock: Clock, step_s: float) -> None:
    limiter = make(clock)
    times: list[float] = []
    for _ in range(600):
        clock.now_s += step_s
        if passed(limiter, 1):
            times.append(clock.now_s)

    assert max(sum(1 for t in times if end - 60 < t <= end) for end in times) <= 15


def test_a_burst_has_a_limit_of_its_own_within_the_minutes(clock: Clock) -> None:
    limiter = make(clock, limit=((60_000, 600), (1_000, 100)))

    assert passed(limiter, 150) == 100
    assert wait_s(limiter) <= 2
    for _ in range(20):
        clock.now_s += 2
        passed(limiter, 60)
    assert passed(limiter, 1) == 0
    assert 1 < wait_s(limiter) <= 60


def test_a_clock_that_is_set_back_locks_no_caller_out(clock: Clock) -> None:
    limiter = make(clock)
    passed(limiter, 10)

    clock.now_s -= 3600
    assert passed(limiter, 20) == 10


def test_a_limit_of_one_lets_one_through_again(clock: Clock) -> None:
    limiter = make(clock, limit=((60_000, 1),))
    limiter.admit_key("me")

    clock.now_s += wait_s(limiter)
    limiter.admit_key("me")


def test_memory_is_bounded_and_active_callers_are_not_forgotten(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SUBJECTS_MAX", 5)
    limiter = make(clock)
    for number in range(100):
        passed(limiter, 1)
        passed(limiter, 1, who=f"other-{number}")

    assert len(limiter._subjects) == 5
    assert passed(limiter, 1) == 0


@pytest.mark.parametrize(
    ("addresses", "most"),
    [
        # By the /64, the /56 and the /48: 10, 20 and 40 requests.
        ([f"2001:db8::{number:x}" for number in range(100)], 10),
        ([f"2001:db8:0:{number:x}::1" for number in range(100)], 20),
        ([f"2001:db8:0:{number:x}00::1" for number in range(100)], 40),
        ([f"2001:db8:{number:x}::1" for number in range(100)], 100),
        ([f"198.51.100.{number}" for number in range(100)], 100),
        ([f"fe80::{number:x}%eth0" for number in range(100)], 10),
    ],
)
@pytest.mark.parametrize("is_told", [False, True])
def test_an_ipv6_network_has_bounded_limits_whatever_addresses_it_uses(
    clock: Clock, addresses: list[str], most: int, *, is_told: bool
) -> None:
    limiter = make(clock, Recording() if is_told else None)
    link_id = uuid.uuid4()

    def count(admit: Callable[[Source], None]) -> int:
        admitted = 0
        for address in addresses:
            with contextlib.suppress(TooManyRequestsError):
                admit(source_of(ip_address(address)))
                admitted += 1
        return admitted

    assert count(lambda source: limiter.admit("public", source)) == most
    # A request that a wider block refuses uses up nothing of a narrower one.
    assert len(limiter._subjects) <= 3 * most + 3
    assert count(lambda source: limiter.admit_page("public", source, link_id)) == most
    assert count(lambda source: limiter.admit_checkout(source, link_id)) == most
    assert count(limiter.note_unknown) == most
    # Where the network has looked up that many unknown payments, none of its addresses looks up another one.
    assert count(lambda source: limiter.admit_page("public", source, uuid.uuid4())) in {0, 100 - most, 100}


def test_threads_at_once_do_not_pass_the_limit_together(clock: Clock) -> None:
    limiter = make(clock, limit=((60_000, 500),))
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: passed(limiter, 200), range(8))) == 500


def test_a_window_never_learns_less_than_it_knows() -> None:
    window = Window(60_000, 10)
    window.move(60_000)
    window.count(7)

    window.merge_totals(1, 2, 0)
    assert window.current == 9
    window.merge_totals(2, 100, 100)
    assert window.current == 9


# Several processes --------------------------------------------------------------------------------------------------


@pytest.fixture
def link(redis_url: str) -> Iterator[RedisLink]:
    connection = RedisLink(redis_url)
    yield connection
    connection.close()


def test_processes_share_a_limit_through_redis(clock: Clock, link: RedisLink) -> None:
    limiters = [make(clock, link) for _ in range(3)]

    total = 0
    for _ in range(20):
        for limiter in limiters:
            total += passed(limiter, 1)
            clock.now_s += 0.01

    assert 10 <= total <= 12
    assert all(passed(limiter, 1) == 0 for limiter in limiters)


def test_a_small_limit_is_asked_for_at_every_request(clock: Clock, link: RedisLink) -> None:
    limiters = [make(clock, link, limit=((60_000, 3),)) for _ in range(3)]

    assert sum(passed(limiter, 1) for limiter in limiters * 4) == 3


def test_redis_keys_expire_with_their_windows(clock: Clock, link: RedisLink) -> None:
    make(clock, link).admit_key("me")

    keys = link.run([("KEYS", "t:limit:*")])[0]
    assert len(keys) == 1
    assert 0 < link.run([("PTTL", keys[0])])[0] <= 120_000


def test_redis_flushed_forgets_nothing_that_this_process_counted(clock: Clock, link: RedisLink) -> None:
    limiter = make(clock, link)
    passed(limiter, 10)
    link.run([("FLUSHALL",)])
    clock.now_s += 1

    assert passed(limiter, 1) == 0


class Recording:
    """A Redis that counts its calls, or is away."""

    def __init__(self) -> None:
        self.calls = 0
        self.is_away = False
        self.hold: threading.Event | None = None
        self.entered = threading.Event()

    def script(self, source: bytes) -> str:
        return str(len(source))

    def run(self, commands: Any) -> list[Any]:
        self.calls += 1
        self.entered.set()
        if self.hold is not None:
            self.hold.wait(60)
        if self.is_away:
            raise LinkDownError("away")  # type: ignore[no-untyped-call]
        return [[0] * 2 * (len(commands[0]) // 2)]


def test_most_requests_cost_no_round_trip(clock: Clock) -> None:
    redis = Recording()
    limiter = make(clock, redis, limit=((60_000, 100_000),))
    for _ in range(1000):
        limiter.admit_key("me")
        clock.now_s += 0.001

    assert redis.calls <= 11


def test_without_redis_each_process_keeps_the_limit_for_itself(clock: Clock) -> None:
    redis = Recording()
    redis.is_away = True
    limiter = make(clock, redis)

    assert passed(limiter, 30) == 10
    assert redis.calls == 1, "who is away is not asked again for a while"
    clock.now_s += 120
    redis.is_away = False
    assert passed(limiter, 30) == 10
    assert redis.calls > 1


def test_a_redis_that_hangs_holds_up_one_request_alone(clock: Clock) -> None:
    redis = Recording()
    redis.hold = threading.Event()
    limiter = make(clock, redis)
    stuck = threading.Thread(target=limiter.admit_key, args=("me",))
    stuck.start()
    assert redis.entered.wait(60)
    started_at = time.monotonic()

    assert passed(limiter, 30) == 9
    assert passed(limiter, 30, who="other") == 10
    assert time.monotonic() - started_at < 30
    redis.hold.set()
    stuck.join()


def test_429_has_its_own_shape_with_redis_down(keys: Keys, caller: FakeCaller) -> None:
    app = create_app(
        make_settings(**LOW),
        caller=caller,
        queues=FakeQueues(),
        link=RedisLink("redis://127.0.0.1:1"),
        find_key=keys.find,
        now=lambda: NOW,
    )
    client = Client(app)

    assert [client.post("/v1/payment", GOOD).status_code for _ in range(3)] == [200] * 3
    assert_refused(client.post("/v1/payment", GOOD))
    assert [client.public_post(SELECT, CHOICE).status_code for _ in range(2)] == [200] * 2
    assert_refused(client.public_post(SELECT, CHOICE))


def test_two_gateways_share_the_limit_of_a_key_over_http(keys: Keys, caller: FakeCaller, link: RedisLink) -> None:
    settings = make_settings(**LOW)
    clients = [
        Client(create_app(settings, caller=caller, queues=FakeQueues(), link=link, find_key=keys.find, now=lambda: NOW))
        for _ in range(2)
    ]

    statuses = [client.post("/v1/payment", GOOD).status_code for client in clients * 3]
    assert statuses == [200, 200, 200, 429, 429, 429]
