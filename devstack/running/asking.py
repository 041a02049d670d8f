"""Asks a running stack: its API as a buyer does, and its desk. Called by the commands of `sluice dev`."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

import urllib3

from cli.output import CommandError
from devstack.running.state import RunningStack

LIMIT_S: Final = 30.0


def ask(stack: RunningStack, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, Any] | None:
    """Return the result of a call that needs no signature; None if the API does not know its subject.

    Raises CommandError with the API's message for any other refusal.
    """
    status, answer = _send(method, stack.base_url + path, body)
    if status == HTTPStatus.NOT_FOUND:
        return None
    if status != HTTPStatus.OK:
        raise CommandError(f"the gateway refuses: {answer.get('error', answer).get('message', 'without a reason')}")
    result: dict[str, Any] = answer["result"]
    return result


def order(stack: RunningStack, name: str, **fields: object) -> dict[str, Any]:
    """Have the stack's desk pay or move the clock; return its answer. Raises CommandError."""
    status, answer = _send("POST", f"{stack.desk_url}/{name}", fields)
    if status != HTTPStatus.OK:
        raise CommandError(f"the stack could not do it: {answer.get('error', 'no reason was given')}")
    return answer


def _send(method: str, url: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
    raw = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if raw else {}
    try:
        answer = urllib3.request(method, url, body=raw, headers=headers, timeout=LIMIT_S, retries=False, redirect=False)
        read = json.loads(answer.data)
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        raise CommandError(f"the stack does not answer as it should; look at its terminal: {error}") from None
    return answer.status, read if isinstance(read, dict) else {}
