"""Sends HTTP requests to one node, bounded, and without showing its address or credentials in errors.

Used by chains.net.json_rpc and chains.net.rest.

A node's URL often carries its owner's key, so no error of this module shows one.
"""

import re
import time
import zlib
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

import urllib3

from chains.base import ProviderError
from chains.net import answer, budget, usage
from core.settings.node_urls import read_node_url

# Idle connections kept to one node; a thread beyond them opens its own for a moment.
POOL_SIZE: Final = 4
# A full block of the busiest chain we serve is some 5 MB.
REPLY_BYTES_MAX: Final = 64 * 1024 * 1024
# TRON answers its head with a whole block; pools and traces are the largest of the others.
KIND_BYTES_MAX: Final[Mapping[usage.Kind, int]] = {
    usage.Kind.HEAD: 4 * 1024 * 1024,
    usage.Kind.SMALL: 32 * 1024 * 1024,
}
# An answer that is longer holds no more blanks than this share: indented JSON has fewer.
BLANKS_FREE: Final = 64 * 1024
BLANKS_SHARE_MAX: Final = 0.75
# Objects and lists of one answer: empty ones cost a hundred times more memory than bytes.
VALUES_MAX: Final = 1_000_000
# Parts of all of them: short numbers cost ten times more memory than bytes.
PARTS_MAX: Final = 4_000_000
BLANKS: Final = b" \t\r\n"
# A text of JSON, whose characters are no values; of more quotes than this, none is looked for.
TEXTS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
QUOTES_MAX: Final = 2_000_000
READ_BYTES: Final = 256 * 1024
# The pause for a node that asks for patience without a time, and the longest pause for any node.
PATIENCE_S: Final = 5.0
PATIENCE_MAX_S: Final = 120.0
# A call that fails after this long has cost as much as a silent node.
SILENT_FROM_S: Final = 1.0
HIDDEN: Final = "***"
# Shorter secrets are parts of ordinary words, and scrubbing these would make answers look alike.
SECRET_CHARS_MIN: Final = 8
ANSWERS: Final = frozenset({HTTPStatus.OK})
# Statuses of hosts whose plan lacks a method, or whose answer would be too long.
REFUSALS: Final = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.METHOD_NOT_ALLOWED,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    }
)
# The most that is read of an error's body.
FAULT_BYTES_MAX: Final = 4096
HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "gzip"}
# The window of zlib for the format of gzip, and for no other.
GZIP: Final = 16 + zlib.MAX_WBITS


class RateLimitedError(ProviderError):
    """The node asks for patience; do not ask it again before `retry_after_s` seconds have passed."""

    def __init__(self, what: str, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"{what}: HTTP status 429, again in {retry_after_s:.0f} s")


class RefusedError(ProviderError):
    """The node understood the request and refused it."""

    # True if an HTTP status is the refusal: the node may refuse all questions, so its chain is verified again.
    is_by_status = False


class StatusError(RefusedError):
    """The node, or a host before it, refused one question by its status."""

    is_by_status = True

    def __init__(self, what: str, status: int, body: bytes) -> None:
        self.status = status
        self.body = body
        super().__init__(f"{what}: HTTP status {status}")


class TooMuchError(ProviderError):
    """The answer is too long."""


class TooSlowError(ProviderError):
    """The answer takes too long: the node is slow, or the question is too large for it."""


class HttpNode:
    """One node. Safe to share between threads."""

    def __init__(self, url: str, *, timeout_s: float, answers: Collection[int] = ANSWERS) -> None:
        """Take a URL as core.settings.node_urls reads it. Raises ValueError.

        answers: the statuses that bring one.
        """
        node = read_node_url(url)
        self._timeout_s, self._answers = timeout_s, answers
        self._path, mark, query = urllib3.util.parse_url(node.address).request_uri.partition("?")
        self._query = mark + query
        self._secrets = sorted((text for text in node.secrets if len(text) >= SECRET_CHARS_MIN), key=len, reverse=True)
        self._headers = {**HEADERS, **dict(node.headers)}
        # Neither retries nor redirects: the caller has other nodes, and the target of a redirect is not the node that
        # the operator chose, and must not see its credentials.
        self._pool = answer.bounded_pool(node.address, size=POOL_SIZE)

    def scrub(self, text: str) -> str:
        """Return a node's text without credentials: some nodes repeat the key that they refuse."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def post(self, what: str, body: bytes, *, below: str = "", bytes_max: int = 0) -> bytes:
        """Send JSON and return the answer's body. what: names the question in errors.

        below: a path under the node's own. bytes_max: the answer's bound; for 0 that of its kind of question.

        Raises RateLimitedError, BudgetSpentError or ProviderError.
        """
        path = self._path.rstrip("/") + "/" + below if below else self._path
        timeout_s = budget.take(self._timeout_s)
        began, is_timeout, body_read = time.monotonic(), False, None
        try:
            with (
                usage.calling(what),
                answer.within(timeout_s),
                self._sent(path + self._query, body, timeout_s) as response,
            ):
                if response.status == HTTPStatus.TOO_MANY_REQUESTS:
                    raise RateLimitedError(what, _patience_s(response.headers.get("Retry-After")))
                if response.status in REFUSALS and response.status not in self._answers:
                    raise StatusError(what, response.status, _fault(what, response))
                if response.status not in self._answers:
                    raise ProviderError(f"{what}: HTTP status {response.status}")
                body_read = _read(what, response, bytes_max or _bytes_max())
                return body_read
        except (urllib3.exceptions.HTTPError, OSError) as error:
            is_timeout = isinstance(error, (urllib3.exceptions.TimeoutError, TimeoutError))
            # Its text holds the URL, and so may its context.
            raise (TooSlowError if is_timeout else ProviderError)(f"{what}: {type(error).__name__}") from None
        finally:
            _note(
                what, time.monotonic() - began, self._timeout_s, is_answer=body_read is not None, is_timeout=is_timeout
            )

    def _sent(self, path: str, body: bytes, timeout_s: float) -> urllib3.BaseHTTPResponse:
        return self._pool.urlopen(
            "POST",
            path,
            body=body,
            headers=self._headers,
            timeout=timeout_s,
            preload_content=False,
            # _read inflates within its bounds.
            decode_content=False,
        )


def _note(what: str, seconds: float, timeout_s: float, *, is_answer: bool, is_timeout: bool) -> None:
    """Record the time of a call. An immediate failure says nothing about a node's speed."""
    asked = usage.current()
    if asked is None:
        return
    asked.count_request()
    budget.charge(asked, seconds)
    if is_answer or is_timeout:
        usage.note(what, seconds)
    if is_answer:
        asked.note_answer()
    elif seconds >= min(SILENT_FROM_S, timeout_s) and not budget.is_over():
        asked.note_silence()


def _patience_s(text: str | None) -> float:
    """Read Retry-After: seconds or a date."""
    try:
        wanted = float(int(text)) if text and text.isascii() and text.isdecimal() else _seconds_until(text or "")
    except (ValueError, TypeError):
        wanted = PATIENCE_S
    return min(max(wanted, 1.0), PATIENCE_MAX_S)


def _seconds_until(date: str) -> float:
    moment = parsedate_to_datetime(date)
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


def _bytes_max() -> int:
    """Return the bound of an answer to the kind of question that is asked."""
    kind = usage.current_kind()
    return min(REPLY_BYTES_MAX, KIND_BYTES_MAX.get(kind, REPLY_BYTES_MAX)) if kind else REPLY_BYTES_MAX


def _read(what: str, response: urllib3.BaseHTTPResponse, bytes_max: int) -> bytes:
    """Read a body that may never end."""
    parts, inflater = bytearray(), _inflater(what, response)
    while part := response.read1(READ_BYTES):
        # One byte more than may be, so that a bomb never unfolds.
        parts += part if inflater is None else _inflated(what, inflater, part, bytes_max + 1 - len(parts))
        if len(parts) > bytes_max:
            raise TooMuchError(f"{what}: the answer is too long")
    if inflater is not None and not inflater.eof:
        raise ProviderError(f"{what}: the compressed answer is cut")
    body = bytes(parts)
    if len(body) > BLANKS_FREE and _has_more(body, BLANKS, int(BLANKS_SHARE_MAX * len(body))):
        raise ProviderError(f"{what}: the answer is padded with blanks")
    if _has_more(body, b"{[", VALUES_MAX) or _has_more(body, b",", PARTS_MAX):
        raise TooMuchError(f"{what}: the answer holds too many values")
    return body


def _has_more(body: bytes, marks: bytes, most: int) -> bool:
    """Return True if JSON has more of some characters outside of its texts, which anyone may have written."""
    count = _counted(body, marks)
    if count > most and body.count(b'"') <= QUOTES_MAX:
        count -= sum(_counted(text.group(), marks) for text in TEXTS.finditer(body))
    return count > most


def _counted(body: bytes, marks: bytes) -> int:
    """Count some characters: twice as fast as one by one, where they are several."""
    return body.count(marks) if len(marks) == 1 else len(body) - len(body.translate(None, marks))


def _inflater(what: str, response: urllib3.BaseHTTPResponse) -> "zlib._Decompress | None":
    """Return what inflates a body; None for one that is not compressed. Raises ProviderError for another encoding."""
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding in {"", "identity"}:
        return None
    if encoding != "gzip":
        raise ProviderError(f"{what}: the answer is compressed in a way that was not asked for")
    return zlib.decompressobj(GZIP)


def _inflated(what: str, inflater: "zlib._Decompress", part: bytes, bytes_max: int) -> bytes:
    """Return the next bytes of a body, at most this many. Raises ProviderError for a damaged one, and for a second."""
    try:
        inflated = inflater.decompress(part, bytes_max)
    except zlib.error:
        raise ProviderError(f"{what}: the compressed answer is damaged") from None
    if inflater.unused_data:
        raise ProviderError(f"{what}: more follows the compressed answer")
    return inflated


def _fault(what: str, response: urllib3.BaseHTTPResponse) -> bytes:
    """Return the beginning of an error's body; empty if it cannot be inflated."""
    body = response.read1(FAULT_BYTES_MAX)
    try:
        inflater = _inflater(what, response)
        return body if inflater is None else _inflated(what, inflater, body, FAULT_BYTES_MAX)
    except ProviderError:
        return b""
