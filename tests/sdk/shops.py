"""Drives both libraries alike: calls by the API's operation names, refusals as one exception."""

from __future__ import annotations

import json
import re
import subprocess
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import sluice_client
from sluice_client import errors

DRIVER: Final = Path(__file__).with_name("driver.mjs")
# The places in paths, which the libraries take by position.
PLACES: Final = {"getPublicPayment": 1, "getLink": 1, "getClaim": 1, "claimPayoutLink": 1, "checkOutLink": 1}


class FailedError(Exception):
    """A call failed: kind is the error's class, shown all that a log would show of it."""

    def __init__(self, kind: str, shown: str, **details: Any) -> None:
        super().__init__(f"{kind} {details}: {shown}")
        self.kind, self.shown, self.details = kind, shown, details


class Shop(Protocol):
    """One of the libraries, with a gateway and a key."""

    url: str

    def call(self, name: str, *places: str, key: str | None = None, **fields: Any) -> Any: ...

    def verify(self, body: bytes, headers: dict[str, str], secrets: Any, *, now: float) -> Any: ...

    def shown(self) -> str: ...


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@dataclass
class PythonShop:
    url: str
    public_id: str = "pk"
    secret: str = "sk_very_secret"
    options: dict[str, Any] = field(default_factory=dict)

    def client(self) -> sluice_client.Sluice:
        return sluice_client.Sluice(self.url, self.public_id, self.secret, **self.options)

    def call(self, name: str, *places: str, key: str | None = None, **fields: Any) -> Any:
        given = fields | ({} if key is None else {"idempotency_key": key})
        client = self.client()
        try:
            made = getattr(client, snake(name))(*places, **given)
            return list(made) if name.startswith("iter") else made
        except sluice_client.SluiceError as error:
            raise FailedError(type(error).__name__, "".join(traceback.format_exception(error)), **vars(error)) from None
        finally:
            client.close()

    def verify(self, body: bytes, headers: dict[str, str], secrets: Any, *, now: float) -> Any:
        try:
            return sluice_client.verify_webhook(body, headers, secrets, now=now)
        except errors.InvalidWebhookError as error:
            raise FailedError("InvalidWebhookError", str(error)) from None

    def shown(self) -> str:
        client = self.client()
        return f"{client!r} {client} {vars(client)}"


@dataclass
class NodeShop:
    process: subprocess.Popen[str]
    url: str
    public_id: str = "pk"
    secret: str = "sk_very_secret"
    options: dict[str, Any] = field(default_factory=dict)

    def ask(self, method: str, *args: Any, is_call: bool = True) -> Any:
        client = {"url": self.url, "publicId": self.public_id, "secret": self.secret, **self.options}
        line = json.dumps({"client": client if is_call else None, "method": method, "args": args})
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            details = {snake(name): value for name, value in answer["error"].items()}
            raise FailedError(details.pop("kind"), details.pop("text") + details.pop("trace"), **details)
        return answer["result"]

    def call(self, name: str, *places: str, key: str | None = None, **fields: Any) -> Any:
        options = {} if key is None else {"idempotencyKey": key}
        return self.ask(name, *places, fields, options)

    def verify(self, body: bytes, headers: dict[str, str], secrets: Any, *, now: float) -> Any:
        return self.ask("verifyWebhook", body.decode(), headers, secrets, {"now": now}, is_call=False)

    def shown(self) -> str:
        return str(self.ask("inspect"))
