"""`sluice dev listen`: receives the webhooks of a development stack's shop, and shows and forwards them.

Added by devstack.dev. It keeps its port and its registration, so that the secret is the same after a restart.
"""

from __future__ import annotations

import threading
import time
from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer
import urllib3

from cli.output import CommandError, plain
from core.http.egress import is_loopback
from core.secrets.secretbox import SecretBox
from devstack.running import state
from devstack.running.commands import FolderOption, open_stack
from devstack.running.state import RunningStack
from devstack.shop.client import ApiError, Client
from devstack.shop.receiver import Delivery, Receiver
from devstack.supervise.ports import KeptPorts
from models.db import base
from models.merchants import rows as merchants
from models.webhooks import outbox

# A delivery waits this long for its answer.
FORWARD_LIMIT_S: Final = 8.0
# How often it is looked whether the stack still runs.
LOOK_S: Final = 2.0
HEADERS: Final = ("Content-Type", "User-Agent")
PREFIX: Final = "X-Webhook-"
VISIBLE_CHARS_MAX: Final = 2_000


def listen(
    ctx: typer.Context,
    *,
    forward: Annotated[
        str | None, typer.Option(help="Your shop's address on this machine, which gets each verified webhook.")
    ] = None,
    data: FolderOption = None,
) -> None:
    """Receive the shop's webhooks: show each, verified or not, and pass it on; until Ctrl-C."""
    stack = open_stack(ctx, data)
    target = None if forward is None else _target(forward)
    listener = Listener(target)
    port = KeptPorts(stack.folder / "ports.json").take("listen")
    with Receiver(port=port, answer=listener.take) as receiver:
        listener.secret = _secret(stack, receiver.url)
        print(f"listening on {receiver.url}, for the shop with the key {stack.ready['public_id']}")
        print(f"webhook secret {listener.secret}", flush=True)
        _wait(stack)


class Listener:
    """Judges, shows and forwards deliveries, several at once. A delivery waits until the secret is known."""

    def __init__(self, target: str | None) -> None:
        self._target = target
        self._known = threading.Event()
        self._printing = threading.Lock()
        self._secret = ""

    @property
    def secret(self) -> str:
        """Return the secret of the registration."""
        return self._secret

    @secret.setter
    def secret(self, secret: str) -> None:
        self._secret = secret
        self._known.set()

    def take(self, delivery: Delivery) -> int:
        """Show a delivery and return the status of its answer: the shop's, 400 for an unverified one."""
        self._known.wait(FORWARD_LIMIT_S)
        fault = delivery.fault(self._secret, now_s=time.time())
        if fault:
            self._show(delivery, f"NOT VERIFIED: {fault}; answered 400")
            return HTTPStatus.BAD_REQUEST
        if self._target is None:
            self._show(delivery, "verified")
            return HTTPStatus.OK
        status, words = self._passed_on(delivery, self._target)
        self._show(delivery, f"verified; {words}")
        return status

    def _passed_on(self, delivery: Delivery, target: str) -> tuple[int, str]:
        headers = {
            name: value
            for name, value in delivery.headers.items()
            if name.title() in HEADERS or name.title().startswith(PREFIX)
        }
        try:
            answer = urllib3.request(
                "POST", target, body=delivery.body, headers=headers, timeout=FORWARD_LIMIT_S, retries=False,
                redirect=False,
            )  # fmt: skip
        except urllib3.exceptions.HTTPError as error:
            return HTTPStatus.BAD_GATEWAY, f"{target} does not answer ({type(error).__name__}); answered 502"
        return answer.status, f"{target} answered {answer.status}"

    def _show(self, delivery: Delivery, words: str) -> None:
        body = delivery.body.decode(errors="replace")
        cut = body if len(body) <= VISIBLE_CHARS_MAX else f"{body[:VISIBLE_CHARS_MAX]}…"
        number = delivery.headers.get("X-Webhook-Id", "")
        with self._printing:
            print(plain(f"{time.strftime('%H:%M:%S')} {delivery.event or 'no event'} {number} {words}"))
            print(f"    {plain(cut)}", flush=True)


def _target(url: str) -> str:
    """Return the address to forward to. Raises CommandError unless it is an address of this machine."""
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_web = False
    if not is_web:
        raise CommandError(f"--forward takes an address as http://127.0.0.1:3000/hooks, not {url}")
    if not is_loopback(parts.hostname or ""):
        raise CommandError(f"--forward takes an address of this machine, which {parts.hostname} is not")
    return url


def _secret(stack: RunningStack, url: str) -> str:
    """Return the secret of the shop's registration of this address: the one in force, else a new one's."""
    base.connect(stack.settings["DATABASE_URL"], application_name="sluice-cli")
    try:
        key = merchants.find_key(str(stack.ready["public_id"]))
        kept = None if key is None else outbox.active_endpoint(key.merchant_id)
    finally:
        base.close()
    if kept is not None and kept.url == url:
        return outbox.open_secret(kept.id, kept.secret_box, box=SecretBox(stack.settings["SECRET_KEYS"]))
    if kept is not None:
        print(plain(f"in place of {kept.url}, which receives nothing from now on"))
    return _registered(stack, url)


def _registered(stack: RunningStack, url: str) -> str:
    client = Client(stack.base_url, public_id=str(stack.ready["public_id"]), secret=str(stack.ready["secret"]))
    try:
        return str(client.post("/v1/webhooks", {"url": url})["secret"])
    except (ApiError, urllib3.exceptions.HTTPError) as error:
        raise CommandError(f"the receiver cannot be registered: {error}") from None


def _wait(stack: RunningStack) -> None:
    """Return at Ctrl-C. Raises CommandError once the stack has ended."""
    try:
        while state.is_running(stack.folder):
            time.sleep(LOOK_S)
    except KeyboardInterrupt:
        return
    raise CommandError("the stack has ended: start it again, then `sluice dev listen`")
