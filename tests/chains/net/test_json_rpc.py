"""One node over HTTP: every answer that is malformed or too late is a ProviderError."""

import base64
import gzip
import json
import os
import time
import tracemalloc
import zlib

import pytest

from chains.base import ProviderError
from chains.net import http
from chains.net.json_rpc import JsonRpc, RpcError
from chains.net.usage import Kind, Usage, asking
from devstack.supervise.ports import free_port
from tests.chains.net.test_answer import server
from tests.peers.json_rpc_node import Answer, JsonRpcNode, Raw, Refusal

HTML = b"<!doctype html><title>Please wait</title>"


def ask(answer: Answer, *, timeout_s: float = 30.0) -> str:
    with JsonRpcNode({"eth_method": answer}) as node:
        return JsonRpc(node.url, timeout_s=timeout_s).call("eth_method", [], str)


def test_an_answer_is_an_answer() -> None:
    assert ask("0x10") == "0x10"


def test_a_parameter_arrives() -> None:
    with JsonRpcNode({"echo": lambda first, second: [second, first]}) as node:
        assert JsonRpc(node.url, timeout_s=30).call("echo", ["one", 2], list[object]) == [2, "one"]


def test_connections_are_kept() -> None:
    with JsonRpcNode({"eth_method": "0x1"}) as node:
        client = JsonRpc(node.url, timeout_s=30)
        for _ in range(5):
            client.call("eth_method", [], str)

        assert client._http._pool.num_connections == 1


def test_null_is_an_answer_only_where_it_may_be() -> None:
    with JsonRpcNode({"eth_method": None}) as node:
        client = JsonRpc(node.url, timeout_s=30)

        assert client.call_or_none("eth_method", [], str) is None
        with pytest.raises(ProviderError, match="no result"):
            client.call("eth_method", [], str)


def test_a_refusal_carries_its_code() -> None:
    with pytest.raises(RpcError, match="too many") as caught:
        ask(Refusal(-32005, "too many requests"))
    assert caught.value.code == -32005


@pytest.mark.parametrize(
    "answer",
    [
        Raw(HTML, content_type="text/html"),
        Raw(b""),
        Raw(b'{"jsonrpc": "2.0", "id": 1, "resu'),
        Raw(b'{"jsonrpc": "2.0", "id": 1}'),
        Raw(b'{"jsonrpc": "2.0", "result": "0x1"}'),
        Raw(b'{"jsonrpc": "2.0", "id": 99, "result": "0x1"}'),
        Raw(b'[{"jsonrpc": "2.0", "id": 1, "result": "0x1"}]'),
        Raw(b"[" * 100_000),
        Raw(b'{"jsonrpc": "2.0", "id": 1, "result": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        Raw(b'{"jsonrpc": "2.0", "id": 1, "result": "\xff\xfe"}'),
        Raw(b"null"),
    ],
    ids=[
        "html",
        "nothing",
        "cut",
        "no result",
        "no id",
        "another's id",
        "a batch",
        "a bomb",
        "an inner bomb",
        "bytes",
        "null",
    ],
)
def test_rubbish_with_status_200_is_no_answer(answer: Raw) -> None:
    with pytest.raises(ProviderError):
        ask(answer)


@pytest.mark.parametrize("answer", [1, [], {}, True, 1.5])
def test_a_result_of_another_type_is_no_answer(answer: object) -> None:
    with pytest.raises(ProviderError, match="not the shape"):
        ask(answer)


@pytest.mark.parametrize("status", [204, 301, 401, 403, 429, 500, 502, 503])
def test_another_status_is_no_answer(status: int) -> None:
    with pytest.raises(ProviderError, match=f"HTTP status {status}"):
        ask(Raw(b"" if status == 204 else b'{"jsonrpc": "2.0", "id": 1, "result": "0x1"}', status=status))


@pytest.mark.parametrize("status", [400, 403, 405, 413])
def test_a_status_may_bring_a_refusal(status: int) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "not in your plan"}}'
    with pytest.raises(RpcError, match=r"not in your plan \(-32601\)"):
        ask(Raw(body, status=status))
    with pytest.raises(RpcError, match=f"HTTP status {status}"):
        ask(Raw(b"<html>", status=status))


def test_a_redirect_is_not_followed() -> None:
    with JsonRpcNode({"eth_method": "0x1"}) as other:
        with pytest.raises(ProviderError, match="HTTP status 307"):
            ask(Raw(status=307, location=other.url))
        assert other.asked == []


def test_silence_ends() -> None:
    started = time.monotonic()
    with pytest.raises(ProviderError, match="Timeout"):
        ask(Raw(b"{}", pause_s=60), timeout_s=0.2)
    assert time.monotonic() - started < 30


def test_an_answer_that_drips_ends() -> None:
    # Each byte comes in time, the answer as a whole does not.
    started = time.monotonic()
    with pytest.raises(ProviderError, match="Timeout"):
        ask(Raw(b" " * 1200, byte_pause_s=0.05), timeout_s=0.3)
    assert time.monotonic() - started < 30


def test_an_answer_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REPLY_BYTES_MAX", 1_000_000)
    with pytest.raises(ProviderError, match="too long"):
        ask("0" * 1_000_001)


BLANKS = b" \n\t\r" * 100_000
TOLD = b'{"jsonrpc": "2.0", "id": 1, "result": "0x1"}'


@pytest.mark.parametrize(
    "body", [BLANKS + TOLD, TOLD + BLANKS, TOLD.replace(b'"0x1"', BLANKS + b'"0x1"')], ids=["before", "after", "inside"]
)
def test_an_answer_padded_with_blanks_is_refused(body: bytes) -> None:
    with pytest.raises(ProviderError, match="padded with blanks"):
        ask(Raw(body))


@pytest.mark.parametrize("value", [b"{}", b"[]"])
def test_an_answer_of_millions_of_empty_values_is_refused(value: bytes) -> None:
    """Three bytes each on the wire, and a hundred in memory."""
    values = b",".join([value] * (http.VALUES_MAX + 1))
    with pytest.raises(ProviderError, match="too many values"):
        ask(Raw(b'{"jsonrpc": "2.0", "id": 1, "result": [%b]}' % values))


def test_characters_of_texts_are_neither_values_nor_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone may write them into a payment's comment."""
    monkeypatch.setattr(http, "VALUES_MAX", 100)
    monkeypatch.setattr(http, "PARTS_MAX", 100)
    for text in ("{" * 101, "[" * 101, "," * 101, " " * 400_000, '\\"{[,' * 101, "{" * 101 + "\\"):
        assert ask(text) == text
    monkeypatch.setattr(http, "QUOTES_MAX", 200)
    with pytest.raises(http.TooMuchError, match="too many values"):
        ask('"{' * 201)


@pytest.mark.parametrize("value", [b'["{"]', b'{"a":"\\"","b":"["}', b'["\\\\"]'])
def test_values_beside_texts_count(value: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "VALUES_MAX", 100)
    with pytest.raises(http.TooMuchError, match="too many values"):
        ask(Raw(b",".join([value] * 101)))


def packed(body: bytes, *, status: str = "200 OK", encoding: str = "gzip") -> str:
    """Ask a server whose answer's body is compressed already."""
    head = f"HTTP/1.1 {status}\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"
    with server(head.encode() + body) as url:
        return JsonRpc(url, timeout_s=30).call("eth_method", [], str)


def test_a_compressed_answer_is_an_answer() -> None:
    assert packed(gzip.compress(TOLD)) == "0x1"
    long = TOLD.replace(b"0x1", os.urandom(2_000_000).hex().encode())
    assert len(packed(gzip.compress(long), encoding="GZIP")) == 4_000_000


def test_a_compressed_answer_is_asked_for() -> None:
    assert http.HEADERS["Accept-Encoding"] == "gzip"


def test_a_bomb_is_refused_before_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REPLY_BYTES_MAX", 1_000_000)
    whole = zlib.compressobj(9, wbits=31)
    bomb = b"".join(whole.compress(b"0" * 1_000_000) for _ in range(300)) + whole.flush()
    tracemalloc.start()
    try:
        with pytest.raises(ProviderError, match="too long"):
            packed(bomb)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(TOLD)[:-1], "gzip"),
        (gzip.compress(TOLD)[:-9] + b"\x00" * 9, "gzip"),
        (gzip.compress(TOLD) + b"more", "gzip"),
        (gzip.compress(TOLD) + gzip.compress(b" "), "gzip"),
        (zlib.compress(TOLD), "deflate"),
        (TOLD, "gzip"),
        (TOLD, "br"),
        (gzip.compress(gzip.compress(TOLD)), "gzip, gzip"),
    ],
    ids=["cut", "broken", "more", "twice", "deflate", "plain", "brotli", "nested"],
)
def test_what_is_not_one_compressed_answer_is_refused(body: bytes, encoding: str) -> None:
    with pytest.raises(ProviderError, match="compress"):
        packed(body, encoding=encoding)


def test_a_refusal_may_be_compressed() -> None:
    refusal = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no such plan"}}'
    with pytest.raises(RpcError, match="no such plan"):
        packed(gzip.compress(refusal), status="400 Bad Request")
    with pytest.raises(RpcError, match="HTTP status 400"):
        packed(gzip.compress(refusal)[:20], status="400 Bad Request")


def test_an_indented_answer_is_an_answer() -> None:
    items = [{"number": str(number), "inner": {"value": [number]}} for number in range(5_000)]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": items}, indent=4).encode()
    with JsonRpcNode({"eth_method": Raw(body)}) as node:
        assert len(JsonRpc(node.url, timeout_s=30).call("eth_method", [], list[object])) == 5_000


def test_each_kind_of_question_has_its_longest_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "KIND_BYTES_MAX", {Kind.HEAD: 1_000})
    with JsonRpcNode({"eth_method": "0" * 2_000}) as node:
        client = JsonRpc(node.url, timeout_s=30)
        with asking(Usage(), Kind.BLOCKS):
            client.call("eth_method", [], str)
        with asking(Usage(), Kind.HEAD), pytest.raises(ProviderError, match="too long"):
            client.call("eth_method", [], str)


def test_an_errors_words_are_one_bounded_line() -> None:
    with pytest.raises(RpcError) as caught:
        ask(Refusal(-1, "no\n\x1b[2J\u202e\x00" + "x" * 1_000_000))
    for text in (str(caught.value), caught.value.text):
        assert text.isprintable()
        assert r"no\n\x1b[2J\u202e\x00" in text
        assert len(text) < 300
    assert len(str(ProviderError("y\n" * 1_000_000))) < 1_100


def test_a_node_that_is_down_is_no_answer() -> None:
    with pytest.raises(ProviderError):
        JsonRpc(f"http://127.0.0.1:{free_port()}/v3/secret-key", timeout_s=1).call("eth_method", [], str)


@pytest.mark.parametrize(
    "answer", [Raw(HTML), Raw(b"", status=500), Raw(b"{}", pause_s=1.0), Refusal(-1, "no"), None, 5], ids=repr
)
def test_no_error_shows_the_providers_key(answer: Answer) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(answer, timeout_s=0.2)
    assert "secret-key" not in str(caught.value)
    # A log with a traceback shows the cause, and a context that is not suppressed.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_node_that_is_down_does_not_show_its_key() -> None:
    with pytest.raises(ProviderError) as caught:
        JsonRpc(f"http://127.0.0.1:{free_port()}/v3/secret-key", timeout_s=1).call("eth_method", [], str)
    assert "secret-key" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_nodes_password_is_sent_with_every_request_and_not_in_its_url() -> None:
    with JsonRpcNode({"eth_method": "0x1"}) as node:
        opened = node.url.replace("://", "://us%40er:p%2Cass@") + "#X-Api-Key=a%20key/"
        for _ in range(2):
            node.headers = {}
            assert JsonRpc(opened, timeout_s=30).call("eth_method", [], str) == "0x1"

            assert node.headers["Authorization"] == "Basic " + base64.b64encode(b"us@er:p,ass").decode()
            assert node.headers["X-Api-Key"] == "a key/"
            assert node.headers["Content-Type"] == "application/json"
            assert node.headers["Host"] == node.url.split("/")[2]
            assert node.path == "/v3/secret-key"


def test_a_short_password_leaves_the_words_of_a_refusal_as_they_are() -> None:
    with JsonRpcNode({"eth_method": Refusal(-32000, "already known")}) as node, pytest.raises(RpcError) as caught:
        JsonRpc(node.url.replace("://", "://user:know@"), timeout_s=30).call("eth_method", [], str)

    assert caught.value.text == "already known"


@pytest.mark.parametrize(
    "answer",
    [
        Raw(b"no such key: bluebicycle", status=401),
        Raw(b"{}", pause_s=1.0),
        Refusal(-1, "no such key: bluebicycle, and no greentractor"),
        5,
    ],
    ids=repr,
)
def test_no_error_shows_a_nodes_key(answer: Answer) -> None:
    with JsonRpcNode({"eth_method": answer}) as node:
        opened = node.url.replace("://", "://user:bluebicycle@") + "#X-Api-Key=greentractor"
        with pytest.raises(ProviderError) as caught:
            JsonRpc(opened, timeout_s=0.2).call("eth_method", [], str)

    assert "bluebicycle" not in str(caught.value) + str(getattr(caught.value, "text", ""))
    assert "greentractor" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


# Of nodes that answer refusals with a status of their own ------------------------------------------------------


REFUSED = b'{"result": null, "error": {"code": -8, "message": "Block height out of range"}, "id": 1}'


def test_a_refusal_that_comes_with_an_errors_status_is_read_where_the_family_says_so() -> None:
    with JsonRpcNode({"getblockhash": Raw(REFUSED, status=500)}) as node:
        with pytest.raises(RpcError, match="out of range") as caught:
            JsonRpc(node.url, timeout_s=30, answers={200, 404, 500}).call("getblockhash", [9], str)
        with pytest.raises(ProviderError, match="HTTP status 500") as other:
            JsonRpc(node.url, timeout_s=30).call("getblockhash", [9], str)

    assert caught.value.code == -8
    assert not isinstance(other.value, RpcError)


def test_a_page_with_an_errors_status_is_no_refusal() -> None:
    with JsonRpcNode({"getblockhash": Raw(HTML, status=500)}) as node, pytest.raises(ProviderError) as caught:
        JsonRpc(node.url, timeout_s=30, answers={200, 500}).call("getblockhash", [9], str)

    assert not isinstance(caught.value, RpcError)


# Many at once ---------------------------------------------------------------------------------------------------


def batch(answer: Answer, count: int = 3) -> list[int | RpcError | None]:
    with JsonRpcNode({"method": answer}) as node:
        return JsonRpc(node.url, timeout_s=30).batch("method", [[number] for number in range(count)], int)


def test_many_questions_are_answered_in_their_order_whatever_order_they_come_in() -> None:
    assert batch(lambda number: 10 * number) == [0, 10, 20]


def test_refused_and_missing_answers_keep_their_place() -> None:
    first, second, third = batch(lambda number: (7, None, Refusal(-5, "unknown"))[number])

    assert (first, second) == (7, None)
    assert isinstance(third, RpcError)
    assert third.code == -5


def test_no_question_is_no_request() -> None:
    with JsonRpcNode({}) as node:
        assert JsonRpc(node.url, timeout_s=30).batch("method", [], int) == []
        assert node.asked == []


def test_too_large_a_batch_is_our_error() -> None:
    with pytest.raises(ValueError, match="101 questions"):
        batch(0, count=101)


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'{"jsonrpc": "2.0", "id": 1, "result": 1}',
        b'[{"id": 1, "result": 1}]',
        b'[{"id": 1, "result": 1}, {"id": 1, "result": 1}]',
        b'[{"id": 1, "result": 1}, {"id": 2, "result": 1}, {"id": 3, "result": 1}]',
        b'[{"id": 1, "result": 1}, {"id": 3, "result": 1}]',
        b'[{"id": 1, "result": "x"}, {"id": 2, "result": 1}]',
        b'[{"id": 1}, {"id": 2, "result": 1}]',
    ],
)
def test_a_batch_without_one_answer_for_each_query_is_refused(body: bytes) -> None:
    class Wrong(JsonRpcNode):
        def answer_all(self, requests: object) -> Raw:
            del requests
            return Raw(body)

    with Wrong({}) as node, pytest.raises(ProviderError) as caught:
        JsonRpc(node.url, timeout_s=30).batch("method", [[1], [2]], int)
    assert not isinstance(caught.value, RpcError)


def test_an_answer_of_very_many_short_parts_is_not_decoded() -> None:
    """Two bytes each on the wire, and up to forty in memory."""
    values = b",".join([b"1"] * (http.PARTS_MAX + 2))
    with pytest.raises(ProviderError, match="too many values"):
        ask(Raw(b'{"jsonrpc": "2.0", "id": 1, "result": [%b]}' % values))
