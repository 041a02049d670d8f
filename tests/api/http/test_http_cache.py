"""Whoever has a version is told so instead of being sent it again."""

from __future__ import annotations

import pytest

from api.http.http_cache import etag_of, matches
from tests.api.conftest import Client


@pytest.mark.parametrize("path", ["/v1/currencies", "/openapi.json", "/static/pay.css", "/static/pay.js"])
def test_an_answer_that_is_known_is_not_sent_again(client: Client, path: str) -> None:
    first = client.simulate_get(path)
    etag = first.headers["etag"]

    again = client.simulate_get(path, headers={"If-None-Match": f'"other", W/{etag}'})
    stale = client.simulate_get(path, headers={"If-None-Match": '"other"'})

    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == etag
    assert again.headers["cache-control"] == first.headers["cache-control"]
    assert (stale.status_code, stale.content) == (200, first.content)


@pytest.mark.parametrize("header", ['"a"', 'W/"a"', '"b", "a"', '"b","a"', "*", " * "])
def test_a_named_version_matches(header: str) -> None:
    assert matches(header, '"a"')


@pytest.mark.parametrize("header", ["", "a", '"b"', '"ab"', '"', "W/a", '"a', '"' * 10_001])
def test_another_version_does_not(header: str) -> None:
    assert not matches(header, '"a"')


def test_different_bodies_have_different_versions() -> None:
    assert etag_of(b"a") != etag_of(b"b")
