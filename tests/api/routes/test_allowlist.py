"""A key signs from the addresses that its merchant allows, whatever a request says about where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from falcon import testing

from api.http.auth import KEY_CACHE_S, Authenticator
from core.errors import AuthIpNotAllowed
from core.secrets.signing import sign_request
from tests.api.conftest import NOW, SECRET, Client, FakeCaller, Keys, code_of

PATH = "/v1/ip-allowlist"
GOOD = {"amount": "10", "currency": "USD"}
INSIDE, OUTSIDE, PROXY = "203.0.113.7", "198.51.100.1", "10.0.0.1"


def allow(keys: Keys, ips: Sequence[str], public_id: str = "pk_unified") -> None:
    keys.rows[public_id] = keys.rows[public_id].but(ip_allowlist=ips)


def ask(client: Client, source: str, **headers: str) -> testing.Result:
    return client.post("/v1/payment", GOOD, source=source, headers=headers)


def test_a_key_signs_from_allowed_addresses_only(client: Client, keys: Keys, caller: FakeCaller) -> None:
    allow(keys, ["192.0.2.0/24", INSIDE])

    assert [ask(client, source).status_code for source in (INSIDE, "192.0.2.200", f"::ffff:{INSIDE}")] == [200] * 3
    refused = ask(client, OUTSIDE)
    assert (refused.status_code, code_of(refused)) == (401, "auth.ip_not_allowed")
    assert len(caller.calls) == 3


def test_without_a_list_a_key_signs_from_anywhere(client: Client) -> None:
    assert ask(client, OUTSIDE).status_code == 200


@pytest.mark.parametrize("name", ["X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Client-IP", "CF-Connecting-IP"])
@pytest.mark.parametrize("value", [INSIDE, f"for={INSIDE}", f"{INSIDE}, {INSIDE}"])
@pytest.mark.parametrize("proxies", ["", "10.0.0.0/8"])
def test_spoofed_forwarding_headers_do_not_pass_the_allowlist(
    make_client: Callable[..., Client], keys: Keys, name: str, value: str, proxies: str
) -> None:
    allow(keys, [INSIDE])
    client = make_client(TRUSTED_PROXIES=proxies)

    assert code_of(ask(client, OUTSIDE, **{name: value})) == "auth.ip_not_allowed"


def test_behind_a_trusted_proxy_only_its_own_entry_counts(make_client: Callable[..., Client], keys: Keys) -> None:
    allow(keys, [INSIDE])
    client = make_client(TRUSTED_PROXIES="10.0.0.0/8")

    assert ask(client, PROXY, **{"X-Forwarded-For": INSIDE}).status_code == 200
    assert ask(client, PROXY, **{"X-Forwarded-For": f"{OUTSIDE}, {INSIDE}"}).status_code == 200
    for spoofed in (f"{INSIDE}, {OUTSIDE}", OUTSIDE, ""):
        assert code_of(ask(client, PROXY, **{"X-Forwarded-For": spoofed})) == "auth.ip_not_allowed"


def test_the_address_is_checked_only_after_the_signature(client: Client, keys: Keys) -> None:
    allow(keys, [INSIDE])

    assert code_of(ask(client, OUTSIDE, **{"X-Signature": "0" * 64})) == "merchant.bad_signature"


def test_the_address_comes_before_the_rights(client: Client, keys: Keys) -> None:
    allow(keys, [INSIDE], "pk_payout")

    assert code_of(client.post("/v1/payment", GOOD, public_id="pk_payout")) == "auth.ip_not_allowed"


def test_a_list_is_in_force_within_a_second(keys: Keys) -> None:
    clock = [0.0]
    authenticator = Authenticator(secret_box=keys.box, find_key=keys.find, now=lambda: NOW, monotonic=lambda: clock[0])
    env = {
        "HTTP_X_PUBLIC_ID": "pk_unified",
        "HTTP_X_TIMESTAMP": str(NOW),
        "HTTP_X_SIGNATURE": sign_request(SECRET, str(NOW), "POST", "/", b""),
        "REMOTE_ADDR": OUTSIDE,
    }
    authenticator.authenticate(env, "POST", "/", b"")
    allow(keys, [INSIDE])

    assert KEY_CACHE_S <= 1
    clock[0] = KEY_CACHE_S
    with pytest.raises(AuthIpNotAllowed):
        authenticator.authenticate(env, "POST", "/", b"")


def test_the_actor_gets_the_list_and_the_true_source(client: Client, caller: FakeCaller) -> None:
    caller.result = {"ips": [INSIDE]}

    answer = client.post(PATH, {"ips": [INSIDE]}, headers={"X-Forwarded-For": INSIDE})

    assert (answer.status_code, answer.json["result"]) == (200, {"ips": [INSIDE]})
    assert (caller.last.actor, caller.last.payload) == ("set_allowlist", {"ips": [INSIDE], "source": "127.0.0.1"})


@pytest.mark.parametrize("body", [{}, {"ips": None}])
def test_without_ips_the_list_is_only_read(client: Client, caller: FakeCaller, body: Any) -> None:
    client.post(PATH, body)

    assert caller.last.payload["ips"] is None


def test_an_empty_list_is_not_an_absent_one(client: Client, caller: FakeCaller) -> None:
    client.post(PATH, {"ips": []})

    assert caller.last.payload["ips"] == []


@pytest.mark.parametrize("ips", ["203.0.113.7", 5, {}, [5], [None], ["x"], [INSIDE, ""], [[INSIDE]], [INSIDE] * 101])
def test_an_invalid_list_of_addresses_never_reaches_the_queue(client: Client, caller: FakeCaller, ips: Any) -> None:
    answer = client.post(PATH, {"ips": ips})

    assert (answer.status_code, code_of(answer)) == (400, "allowlist.bad_ip")
    assert caller.calls == []


@pytest.mark.parametrize(("kind", "status"), [("unified", 200), ("payout", 200), ("payment", 403)])
def test_the_list_needs_a_key_that_may_move_money_out(client: Client, kind: str, status: int) -> None:
    assert client.post(PATH, {}, public_id=f"pk_{kind}").status_code == status
