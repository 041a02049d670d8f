"""/metrics is for machines of the operator's, which show METRICS_TOKEN."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

import pytest

from core.logs.redact import secrets_of
from core.settings.settings import SettingsError
from tests.api.conftest import Client, code_of, make_settings

TOKEN: Final = "scrape-0123456789abcdef"
PRODUCTION: Final = {
    "ENVIRONMENT": "production",
    "SECRET_KEYS": "k:" + base64.b64encode(b"k" * 32).decode(),
    "SINGLE_PROVIDER_OK": "1",
}

pytestmark = pytest.mark.usefixtures("database")


def test_production_without_a_token_has_no_metrics(make_client: Callable[..., Client]) -> None:
    client = make_client(**PRODUCTION)

    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": "Bearer None"}):
        answer = client.simulate_get("/metrics", headers=headers)
        assert (answer.status_code, code_of(answer)) == (404, "request.not_found")


@pytest.mark.parametrize("environment", [{}, PRODUCTION])
def test_only_callers_with_the_token_read_the_metrics(
    make_client: Callable[..., Client], environment: dict[str, str]
) -> None:
    client = make_client(**environment, METRICS_TOKEN=TOKEN)

    for wrong in (None, TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"bearer {TOKEN}", "Bearer \xff"):
        answer = client.simulate_get("/metrics", headers={} if wrong is None else {"Authorization": wrong})
        assert (answer.status_code, code_of(answer)) == (401, "auth.bad_token")
        assert answer.headers["www-authenticate"] == "Bearer"
    right = client.simulate_get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert right.status_code == 200
    assert "sluice_scrape_ok" in right.text


def test_wrong_tokens_are_limited_and_the_right_one_is_not(make_client: Callable[..., Client]) -> None:
    client = make_client(METRICS_TOKEN=TOKEN, RATE_LIMIT_PUBLIC_MINUTE="3")

    tried = [client.simulate_get("/metrics", headers={"Authorization": "Bearer no"}).status_code for _ in range(4)]

    assert tried == [401, 401, 401, 429]
    assert client.simulate_get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_development_without_a_token_is_open(client: Client) -> None:
    assert client.simulate_get("/metrics").status_code == 200


def test_a_short_token_is_refused_and_a_token_is_redacted_in_logs() -> None:
    for bad in ("short", "with a blank in the middle"):
        with pytest.raises(SettingsError, match="METRICS_TOKEN"):
            make_settings(METRICS_TOKEN=bad)
    settings = make_settings(METRICS_TOKEN=TOKEN)
    assert TOKEN in secrets_of(settings)
    assert TOKEN not in repr(settings)
