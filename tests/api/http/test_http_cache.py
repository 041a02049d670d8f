"""A client that has the present version gets 304 instead of a copy."""

from __future__ import annotations

import gzip

import pytest

from api.http.http_cache import etag_of, matches
from core.http.encoding import pack, takes_gzip
from tests.api.conftest import Client


@pytest.mark.parametrize("path", ["/v1/currencies", "/openapi.json", "/static/pages.css", "/static/pay.js"])
def test_an_answer_that_is_known_is_not_sent_again(client: Client, path: str) -> None:
    first = client.simulate_get(path)
    etag = first.headers["etag"]

    again = client.simulate_get(path, headers={"If-None-Match": f'"other", W/{etag}'})
    stale = client.simulate_get(path, headers={"If-None-Match": '"other"'})

    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == etag
    assert again.headers["cache-control"] == first.headers["cache-control"]
    assert (stale.status_code, stale.content) == (200, first.content)


def test_the_description_is_compressed_for_clients_that_accept_it(client: Client) -> None:
    plain = client.simulate_get("/openapi.json")
    packed = client.simulate_get("/openapi.json", headers={"Accept-Encoding": "br, gzip;q=0.8"})

    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    assert len(packed.content) * 5 < len(plain.content)
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"


def test_each_form_of_the_description_has_its_own_version(client: Client) -> None:
    gzip_too = {"Accept-Encoding": "gzip"}
    plain = client.simulate_get("/openapi.json").headers["etag"]
    packed = client.simulate_get("/openapi.json", headers=gzip_too).headers["etag"]

    known = client.simulate_get("/openapi.json", headers=gzip_too | {"If-None-Match": packed})
    other = client.simulate_get("/openapi.json", headers=gzip_too | {"If-None-Match": plain})

    assert plain != packed
    assert (known.status_code, known.headers["vary"], other.status_code) == (304, "Accept-Encoding", 200)


def test_another_process_packs_to_the_same_version() -> None:
    # The bytes from the fourth to the seventh are a file's time, by which processes would differ.
    assert pack(b"{}").gzipped[4:8] == bytes(4)


@pytest.mark.parametrize("header", ["gzip", "GZIP", "deflate, gzip", "gzip;q=0.5", "gzip ; Q=1.0", "*", "br, *;q=0.1"])
def test_a_client_that_names_gzip_accepts_it(header: str) -> None:
    assert takes_gzip(header)


@pytest.mark.parametrize("header", ["", "br", "identity", "gzip;q=0.000", "gzip;q=0, *", "*;q=0", "xgzip", "gzip;q"])
def test_a_client_that_omits_or_refuses_gzip_does_not_accept_it(header: str) -> None:
    assert not takes_gzip(header)


@pytest.mark.parametrize("header", ['"a"', 'W/"a"', '"b", "a"', '"b","a"', "*", " * "])
def test_a_named_version_matches(header: str) -> None:
    assert matches(header, '"a"')


@pytest.mark.parametrize("header", ["", "a", '"b"', '"ab"', '"', "W/a", '"a', '"' * 10_001])
def test_another_version_does_not(header: str) -> None:
    assert not matches(header, '"a"')


def test_different_bodies_have_different_versions() -> None:
    assert etag_of(b"a") != etag_of(b"b")
