"""Bodies are read exactly or not at all."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest

from api.http.body import (
    CONTAINERS_MAX,
    DEPTH_MAX,
    VALUES_MAX,
    check_content_type,
    content_length,
    read_body,
    read_json,
)
from core.errors import (
    AuthBodyRead,
    RequestBadContentType,
    RequestBadJson,
    RequestLengthRequired,
    RequestTooLarge,
)

LIMIT = 1024 * 1024


@pytest.mark.parametrize(
    "body",
    [
        b"", b" ", b"[", b"{", b"[]", b"1", b'"text"', b"null", b"true", b"{}{}", b"{} x", b"\xef\xbb\xbf{}",
        b"{'a':1}", b'{"a":1,}', b'{"a":01}', b'{"a":.5}', b'{"a":"\n"}', b'{"a":"\x00"}', b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}', '{"a":1}'.encode("utf-16"), '{"a":1}'.encode("utf-16-le"), '{"a":1}'.encode("utf-32"),
        b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":1,"a":1}', b'{"a":{"b":1,"b":2}}',
        b'{"a":[{"b":1,"b":1}]}', b'{"a":1,"\\u0061":2}', b'{"a":' + b"9" * 5000 + b"}", b'{"a":/**/1}',
    ],
)  # fmt: skip
def test_a_body_other_than_one_plain_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(RequestBadJson):
        read_json(body)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"{}", {}),
        (b' \t\r\n{"a": 1} ', {"a": 1}),
        (b'{"a":{"a":1},"b":[{"a":2}]}', {"a": {"a": 1}, "b": [{"a": 2}]}),
        ('{"ü":"№"}'.encode(), {"ü": "№"}),
        (b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
        (b'{"a":1e400}', {"a": float("inf")}),
    ],
)
def test_plain_json_is_read_unchanged(body: bytes, value: object) -> None:
    assert read_json(body) == value


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return b'{"a":' + opening * (depth - 1) + closing * (depth - 1) + b"}"


def test_nesting_is_allowed_up_to_the_limit_and_not_past_it() -> None:
    read_json(nested(DEPTH_MAX))
    with pytest.raises(RequestBadJson, match="deeper than 64"):
        read_json(nested(DEPTH_MAX + 1))
    with pytest.raises(RequestBadJson, match="deeper than 64"):
        read_json(nested(DEPTH_MAX + 1, b'{"a":', b"}").replace(b"{}", b"1"))


def test_as_many_values_as_items_need_are_read_and_no_more() -> None:
    items = b",".join([b'{"a":[' + b"0," * 38 + b'"1,2"]}'] * 5000)
    assert len(read_json(b'{"a":[%b]}' % items)["a"]) == 5000
    with pytest.raises(RequestBadJson, match="too many values"):
        read_json(b'{"a":[' + b"0," * VALUES_MAX + b"0,0]}")
    with pytest.raises(RequestBadJson, match="too many values"):
        read_json(b'{"a":[' + b"[]," * CONTAINERS_MAX + b"[]]}")


def test_many_brackets_side_by_side_or_inside_texts_are_not_depth() -> None:
    assert len(read_json(b'{"a":[' + b"[]," * 999 + b"[]]}")["a"]) == 1000
    assert read_json(b'{"a":"' + b"[" * 999 + rb"\"" + b"{" * 999 + b'"}')["a"].count("[") == 999


@pytest.mark.parametrize(
    "body",
    [
        b"[" * LIMIT,
        b'{"a":' + b"[" * 200_000,
        b'{"a":"' + b'\\"' * (LIMIT // 2),
        b"[" * 100 + b'"\\' * (LIMIT // 2),
        b"[" * 100 + b'"' * LIMIT,
        (b"[" * 60 + b"]" * 60 + b",") * 8000,
        # Well formed, and a quarter of a second of the parser's time.
        b'{"a":[' + b"[]," * 349_000 + b"[]]}",
        b'{"a":[' + b"0," * 520_000 + b"0]}",
    ],
)
def test_hostile_bodies_of_the_largest_size_are_refused_in_a_moment(body: bytes) -> None:
    started_at = time.process_time()

    with pytest.raises(RequestBadJson):
        read_json(body[:LIMIT])

    assert time.process_time() - started_at < 1.0


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json ",
    ],
)
def test_json_in_utf8_is_the_content_type(content_type: str) -> None:
    check_content_type({"CONTENT_TYPE": content_type})


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"CONTENT_TYPE": ""},
        {"CONTENT_TYPE": "text/plain"},
        {"CONTENT_TYPE": "application/x-www-form-urlencoded"},
        {"CONTENT_TYPE": "application/jsonp"},
        {"CONTENT_TYPE": "application/json-patch+json"},
        {"CONTENT_TYPE": "application/json; charset=utf-16"},
        {"CONTENT_TYPE": "application/json, text/plain"},
        {"CONTENT_TYPE": "application/json", "HTTP_CONTENT_ENCODING": "gzip"},
    ],
)
def test_any_other_content_is_refused(env: dict[str, str]) -> None:
    with pytest.raises(RequestBadContentType):
        check_content_type(env)


@pytest.mark.parametrize("length", ["0", "1", str(LIMIT), None, ""])
def test_a_body_up_to_the_limit_may_be_read(length: str | None) -> None:
    assert content_length({"CONTENT_LENGTH": length}, limit=LIMIT) == int(length or 0)


@pytest.mark.parametrize("length", [str(LIMIT + 1), "9" * 19, "9" * 5000])
def test_a_body_past_the_limit_is_refused_before_it_is_read(length: str) -> None:
    with pytest.raises(RequestTooLarge):
        content_length({"CONTENT_LENGTH": length}, limit=LIMIT)


@pytest.mark.parametrize(
    "env",
    [
        {"HTTP_TRANSFER_ENCODING": "chunked"},
        {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": "2"},
        {"CONTENT_LENGTH": "-1"},
        {"CONTENT_LENGTH": "2, 2"},
        {"CONTENT_LENGTH": "²"},
        {"CONTENT_LENGTH": "1_0"},
    ],
)
def test_a_body_without_one_clear_length_is_refused(env: dict[str, str]) -> None:
    with pytest.raises(RequestLengthRequired):
        content_length(env, limit=LIMIT)


class Broken(io.BytesIO):
    def read(self, *_size: Any) -> bytes:
        raise ConnectionResetError


@pytest.mark.parametrize("stream", [io.BytesIO(b'{"a"'), io.BytesIO(), Broken()])
def test_a_body_that_stops_half_way_can_be_sent_again(stream: io.BytesIO) -> None:
    with pytest.raises(AuthBodyRead):
        read_body({"wsgi.input": stream}, 5)


def test_only_the_announced_bytes_are_read() -> None:
    assert read_body({"wsgi.input": io.BytesIO(b"{}GET / HTTP/1.1")}, 2) == b"{}"
