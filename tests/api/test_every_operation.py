"""A client that has only the OpenAPI document calls every operation of the API with success.

`Walk` reads the document alone: bodies from its examples, identifiers from earlier answers, wherever an example has the
same one. Events outside the API, coin on a chain and other people's acts, are in WORLD, by operation.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import pytest
from falcon import testing
from jsonschema import Draft202012Validator

from models.invoices import rows as invoices
from models.invoices import settlement
from models.wallets import rows as wallets
from models.wallets import settlement as wallet_settlement
from models.webhooks import outbox
from models.webhooks.outbox import Attempt
from tests.api.live import Live
from tests.api.routes.payout_links.rows import linked
from tests.api.routes.payouts.rows import held_payout
from tests.api.rows import UNIT
from tests.models.addresses.test_pool import PUBLIC_KEY
from tests.models.builders import CATALOGUE, Chain
from tests.models.payouts.builders import charge, fund

JSON: Final = "application/json"
# The example of the allowlist lets this address in, so its caller has to be there.
SOURCE: Final = "203.0.113.7"

Send = Callable[[str, str, bool, object], testing.Result]


@dataclass(frozen=True)
class Operation:
    """An operation as the document has it."""

    name: str
    method: str
    path: str
    described: Mapping[str, Any]

    @property
    def is_signed(self) -> bool:
        return self.described.get("security") != []

    @property
    def body(self) -> Any:
        return example(self.described.get("requestBody", {}))

    def success(self) -> tuple[int, Mapping[str, Any]]:
        """Return the status and the description of the answer that means success."""
        return next((int(s), response) for s, response in self.described["responses"].items() if s.startswith("2"))


def example(described: Mapping[str, Any]) -> Any:
    """Return the example of a request or an answer; None where it has no JSON."""
    return described.get("content", {}).get(JSON, {}).get("example")


@dataclass
class Walk:
    """Calls all operations of a document, in an order that it finds out by trying."""

    document: Mapping[str, Any]
    send: Send
    # The values that take the place of an example's, by its field: from the answer that had the example's place.
    known: dict[tuple[str, str], str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def operations(self) -> Iterator[Operation]:
        for path, methods in self.document["paths"].items():
            for method, described in methods.items():
                yield Operation(described["operationId"], method.upper(), path, described)

    def run(self, prepare: Callable[[str], None]) -> set[str]:
        """Call what has not succeeded yet until that brings nothing more; return what never did.

        prepare: brings about, before an operation, what no other operation can.
        """
        left = {operation.name for operation in self.operations()}
        before = len(left) + 1
        while left and len(left) < before:
            before = len(left)
            for operation in [each for each in self.operations() if each.name in left]:
                prepare(operation.name)
                if self._succeeds(operation):
                    left.discard(operation.name)
        return left

    def _succeeds(self, operation: Operation) -> bool:
        body = self._filled(operation.body)
        answer = self.send(operation.method, self._path(operation), operation.is_signed, body)
        status, described = operation.success()
        if answer.status_code != status:
            self.refused[operation.name] = f"{answer.status_code} {answer.text[:200]}, asked with {json.dumps(body)}"
            return False
        shown = described.get("content", {})
        if JSON in shown:
            schema = {**shown[JSON]["schema"], "components": self.document["components"]}
            Draft202012Validator(schema).validate(answer.json)
            self._learn(example(described), answer.json)
        return True

    def _path(self, operation: Operation) -> str:
        """Return a path with what was learnt of the examples of its places, whatever field brought it."""
        learnt = {shown: actual for (_, shown), actual in self.known.items()}
        places = self.document["components"]["parameters"]
        return re.sub(
            r"\{(\w+)\}", lambda place: learnt.get(shown := places[place[1]]["example"], shown), operation.path
        )

    def _filled(self, body: Any, name: str = "") -> Any:
        if isinstance(body, dict):
            return {key: self._filled(value, key) for key, value in body.items()}
        if isinstance(body, list):
            return [self._filled(item, name) for item in body]
        return self.known.get((name, body), body) if isinstance(body, str) else body

    def _learn(self, shown: Any, actual: Any, name: str = "") -> None:
        """Note what an answer has where its example has something else. The first answer is kept to."""
        if isinstance(shown, dict) and isinstance(actual, dict):
            for key in shown.keys() & actual.keys():
                self._learn(shown[key], actual[key], key)
        elif isinstance(shown, list) and isinstance(actual, list):
            for one, other in zip(shown, actual, strict=False):
                self._learn(one, other, name)
        elif isinstance(shown, str) and isinstance(actual, str):
            self.known.setdefault((name, shown), actual)


# The world ----------------------------------------------------------------------------------------------------------


@dataclass
class World:
    """The events from outside, while a client walks through the operations."""

    live: Live
    chain: Chain
    walk: Walk

    def prepare(self, name: str) -> None:
        if name in WORLD:
            WORLD[name](self)

    def operation(self, name: str) -> Operation:
        return next(each for each in self.walk.operations() if each.name == name)

    def named(self, operation: str, name: str) -> tuple[str, str]:
        """Return a field of an operation's example, as answers are noted."""
        return name, self.operation(operation).body[name]

    def again(self, operation: str, **body: str) -> invoices.InvoiceRow:
        """Create another payment, as an operation's example says but for some of its fields."""
        create = self.operation(operation)
        made = self.live.post(create.path, create.body | body).json["result"]["uuid"]
        payment = invoices.find_public(UUID(made))
        assert payment is not None
        return payment

    def order(self, operation: str) -> invoices.InvoiceRow | None:
        return invoices.find_by_order(self.live.shop, self.named(operation, "order_id")[1])

    def pay(self, payment: invoices.InvoiceRow, units: int) -> None:
        self.chain.pay_and_confirm(payment, units)
        settlement.settle(CATALOGUE, payment.id)


def a_sale_is_paid(world: World) -> None:
    payment = world.order("refundPayment")
    if payment is not None and payment.status == "check":
        world.pay(payment, payment.payer_units or 0)


def a_sale_is_paid_short(world: World) -> None:
    """The order's payment is paid by then, so that the order may have another."""
    paid = world.order("resolvePayment")
    if paid is None or paid.status != "paid":
        return
    payment = world.again("createPayment")
    world.pay(payment, UNIT)
    world.chain.pass_by(payment.expires_at)
    settlement.settle(CATALOGUE, payment.id)


def a_blocked_wallet_is_paid(world: World) -> None:
    wallet_id = world.walk.known.get(world.named("refundBlockedWallet", "uuid"))
    wallet = wallets.find(world.live.shop, wallet_id=UUID(wallet_id)) if wallet_id else None
    if wallet is not None and wallet.is_blocked:
        world.chain.pay_and_confirm(wallet, 50 * UNIT)
        wallet_settlement.settle(CATALOGUE, wallet.id)


def a_buyer_is_to_choose(world: World) -> None:
    """The payment of the other examples has its coin."""
    place = world.walk.document["components"]["parameters"]["invoice_id"]["example"]
    world.walk.known["uuid", place] = world.live.agnostic()


def a_webhook_fails_once(world: World) -> None:
    """Let a webhook of a sale fail, once there is an endpoint."""
    if outbox.active_endpoint(world.live.shop) is None:
        return
    made = world.again("createPayment", order_id="told-of")
    world.pay(made, made.payer_units or 0)
    leased = outbox.lease_due(limit=100, per_merchant=100, allowances={}).deliveries
    outbox.record_attempts([Attempt(id=d.id, lease=d.lease, status_code=500, error="answered 500") for d in leased])


def somebody_else_orders_a_payout(world: World) -> None:
    payout = held_payout(world.live.shop, created_by="somebody else")
    world.walk.known[world.named("approvePayout", "uuid")] = str(payout.id)


def a_merchant_receives(world: World) -> None:
    world.walk.known[world.named("addSplitRule", "recipient_merchant_id")] = str(world.live.stranger)


def a_cheque_is_left(world: World) -> None:
    """The one of the other examples is cancelled."""
    place = world.walk.document["components"]["parameters"]["token"]["example"]
    world.walk.known["claim_token", place] = linked(world.live, reference="left")["claim_token"]


# The events outside the API that these operations need.
WORLD: Final[Mapping[str, Callable[[World], None]]] = {
    "refundPayment": a_sale_is_paid,
    "resolvePayment": a_sale_is_paid_short,
    "refundBlockedWallet": a_blocked_wallet_is_paid,
    "selectMethod": a_buyer_is_to_choose,
    "listWebhookDeliveries": a_webhook_fails_once,
    "approvePayout": somebody_else_orders_a_payout,
    "addSplitRule": a_merchant_receives,
    "claimPayoutLink": a_cheque_is_left,
}


@pytest.fixture
def world(live: Live, chain: Chain, monkeypatch: pytest.MonkeyPatch) -> World:
    """A gateway with everything that it may be asked for, and who walks through its description."""
    live.configure(ADDRESS_PUBLIC_KEY=PUBLIC_KEY, SMTP_URL="smtp://127.0.0.1:1", POOL_LOW="1")
    fund(live.shop, 1_000_000 * UNIT)
    charge()
    # The test webhook finds no receiver, and asks no name server for one.
    monkeypatch.setattr("socket.getaddrinfo", no_name)

    def send(method: str, path: str, is_signed: bool, body: object) -> testing.Result:  # noqa: FBT001
        sent = b"" if body is None else json.dumps(body).encode()
        if is_signed:
            return live.client.signed(path, sent, method=method, source=SOURCE)
        headers = {"Content-Type": JSON} if sent else {}
        return live.client.simulate_request(method, path, body=sent or None, headers=headers, remote_addr=SOURCE)

    document = send("GET", "/openapi.json", False, None).json
    return World(live, chain, Walk(document, send))


def no_name(*_args: object, **_options: object) -> Any:
    raise socket.gaierror(socket.EAI_NONAME, "the tests know no names")


def test_a_client_with_the_description_alone_calls_every_operation(world: World) -> None:
    """If an operation is left here, its examples must agree with those of the operations that create its objects.

    Objects that no operation creates belong in WORLD.
    """
    left = world.walk.run(world.prepare)

    assert {name: world.walk.refused[name] for name in sorted(left)} == {}


def test_an_operation_that_never_succeeds_is_left_with_its_refusal(world: World) -> None:
    paths = world.walk.document["paths"]
    poor = {"/v1/payment": paths["/v1/payment"], "/v1/payout/link/info": paths["/v1/payout/link/info"]}
    walk = Walk({**world.walk.document, "paths": poor}, world.walk.send)

    assert walk.run(lambda _: None) == {"getPayoutLink"}

    assert "payoutlink.not_found" in walk.refused["getPayoutLink"]


def test_the_world_helps_no_operation_that_is_not_there(world: World) -> None:
    assert WORLD.keys() <= {operation.name for operation in world.walk.operations()}
