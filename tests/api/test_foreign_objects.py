"""Another merchant's object gets exactly the answer of an object that does not exist, at every endpoint.

FOREIGN has, for each signed endpoint, the requests that could touch another merchant's object, each with the same
request for an object that does not exist. An endpoint that is in neither table fails here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import pytest

from api.endpoints import Endpoint
from api.routes import ENDPOINTS
from models.db import base
from models.ledger.ledger import Account, Transfer, post
from tests.api.live import Live
from tests.api.routes.payment_links.rows import opened
from tests.api.routes.payout_links.rows import linked
from tests.api.routes.payouts.rows import held_payout
from tests.api.rows import UNIT, add_deposit, add_invoice

NOBODYS: Final = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
NO_ADDRESS: Final = "0x00000000000000000000000000000000DeaDBeef"
WALLET: Final = {"currency": "USDT", "network": "ethereum"}
TXID: Final = "0x" + "ab" * 32
SIGNED: Final = [endpoint for endpoint in ENDPOINTS if endpoint.rights is not None]


@dataclass(frozen=True)
class Theirs:
    """The stranger's objects."""

    invoice: str
    short: str
    order: str
    wallet: str
    wallet_address: str
    delivery: str
    payout: str
    payout_order: str
    link: str
    payment_link: str
    batch: str
    rule: str


Pair = tuple[Any, Any]
Pairs = Callable[[Theirs], list[Pair]]


def payments(**more: Any) -> Pairs:
    return lambda theirs: [
        ({"uuid": theirs.invoice} | more, {"uuid": NOBODYS} | more),
        ({"uuid": theirs.short} | more, {"uuid": NOBODYS} | more),
        ({"order_id": theirs.order} | more, {"order_id": "nobody's"} | more),
    ]


def payouts() -> Pairs:
    return lambda theirs: [
        ({"uuid": theirs.payout}, {"uuid": NOBODYS}),
        ({"order_id": theirs.payout_order}, {"order_id": "nobody's"}),
        ({"uuid": theirs.invoice}, {"uuid": NOBODYS}),
    ]


FOREIGN: Final[dict[str, Pairs]] = {
    "getPayment": payments(),
    "getPaymentQr": payments(),
    "resendPayment": payments(),
    "getPaymentTimeline": payments(),
    "sendPaymentEmail": payments(email="ann@mail.example"),
    "resolvePayment": lambda theirs: [
        *payments(action="accept")(theirs),
        *payments(action="accept", txid=TXID)(theirs),
        *payments(action="refund", address=NO_ADDRESS)(theirs),
        *payments(action="refund", address=NO_ADDRESS, txid=TXID)(theirs),
    ],
    "refundPayment": payments(address=NO_ADDRESS),
    "refundBlockedWallet": lambda theirs: [
        ({"uuid": theirs.wallet, "refund_address": NO_ADDRESS}, {"uuid": NOBODYS, "refund_address": NO_ADDRESS}),
        (
            {"address": theirs.wallet_address, "refund_address": NO_ADDRESS},
            {"address": NO_ADDRESS, "refund_address": NO_ADDRESS},
        ),
    ],
    "listPayments": lambda theirs: [({"order_id": theirs.order}, {"order_id": "nobody's"}), ({}, {})],
    "blockWallet": lambda theirs: [
        ({"address": theirs.wallet_address}, {"address": NO_ADDRESS}),
        ({"address": theirs.wallet_address.lower(), "is_force_block": False}, {"address": NO_ADDRESS}),
    ],
    "getWallet": lambda theirs: [
        ({"uuid": theirs.wallet}, {"uuid": NOBODYS}),
        ({"address": theirs.wallet_address}, {"address": NO_ADDRESS}),
        ({"uuid": theirs.invoice}, {"uuid": NOBODYS}),
    ],
    "getBatch": lambda theirs: [({"batch_id": theirs.batch}, {"batch_id": NOBODYS})],
    "listWebhookDeliveries": lambda theirs: [({"uuid": theirs.invoice}, {"uuid": NOBODYS}), ({}, {})],
    "getPaymentLink": lambda theirs: [({"link_id": theirs.payment_link}, {"link_id": NOBODYS})],
    "togglePaymentLink": lambda theirs: [
        ({"link_id": theirs.payment_link, "active": active}, {"link_id": NOBODYS, "active": active})
        for active in (True, False)
    ],
    "listPaymentLinks": lambda _theirs: [({"limit": 9}, {"limit": 9, "offset": 9})],
    "getPayoutLink": lambda theirs: [({"link_id": theirs.link}, {"link_id": NOBODYS})],
    "cancelPayoutLink": lambda theirs: [({"link_id": theirs.link}, {"link_id": NOBODYS})],
    "listPayoutLinks": lambda _theirs: [({"limit": 9}, {"limit": 9, "offset": 9})],
    "approvePayout": payouts(),
    "getPayout": payouts(),
    "listPayouts": lambda theirs: [({"order_id": theirs.payout_order}, {"order_id": "nobody's"}), ({}, {})],
    "cancelPayout": payouts(),
    "deleteSplitRule": lambda theirs: [
        ({"rule_id": theirs.rule}, {"rule_id": NOBODYS}),
        ({"rule_id": theirs.rule.upper()}, {"rule_id": NOBODYS}),
    ],
    "redeliverWebhook": lambda theirs: [({"delivery_id": theirs.delivery}, {"delivery_id": NOBODYS})],
}

# Endpoints without the id of an object; they show and change only the key's own merchant, as tested below.
OWN: Final = {
    "createPayment": "an order_id is one of the caller's own",
    "createWallet": "an order_id is one of the caller's own",
    "createPaymentBatch": "items name the caller's own, as in createPayment",
    "createPayoutBatch": "items name the caller's own, as in createPayout",
    "createRefundBatch": "items name the caller's own, as in createRefund",
    "listPaymentMethods": "the caller's terms",
    "listExchangeRates": "the same for everybody",
    "getBalance": "the caller's balance",
    "createPaymentLink": "takes no id at all",
    "createPayout": "an order_id is one of the caller's own; the address is the recipient's",
    "createPayouts": "as createPayout",
    "calculatePayout": "the caller's terms",
    "listPayoutMethods": "the same for everybody",
    "setPayoutFees": "the caller's terms",
    "setAutoWithdraw": "the caller's rules; the address is the recipient's",
    "createPayoutLink": "a reference is one of the caller's own",
    "createPayoutLinks": "a reference is one of the caller's own",
    "transferToPersonal": "the caller's balance; an order_id is one of its own",
    "setAcceptedMethods": "the caller's terms",
    "setDiscount": "the caller's terms",
    "setAccuracy": "the caller's terms",
    "renderQr": "draws any text",
    "registerWebhook": "the caller's endpoint",
    "testWebhook": "the caller's endpoint",
    "addSplitRule": "the caller's own rule; its recipient is any other merchant",
    "listSplitRules": "the caller's rules",
    "getSplitConfig": "the caller's terms, and what it received",
    "setSplitConfig": "the caller's terms",
    "setIpAllowlist": "the caller's list",
}
IDS: Final = {
    "uuid",
    "order_id",
    "address",
    "delivery_id",
    "txid",
    "wallet_id",
    "link_id",
    "batch_id",
    "payout_id",
    "rule_id",
}


@pytest.fixture
def theirs(live: Live) -> Theirs:
    link = linked(live, public_id="pk_stranger")
    # Made before the endpoint, so that the delivery below is the only one.
    payout = held_payout(live.stranger)
    short = add_invoice(live.stranger, status="wrong_amount", confirmed_units=1)
    add_deposit(live.stranger, short, txid=TXID)
    invoice = add_invoice(live.stranger, order_id="their-order", address="0x1111111111111111111111111111111111111111")
    live.webhook_endpoint(live.stranger)
    base.execute(
        "INSERT INTO webhook_deliveries (id, merchant_id, event, object_id, body, next_attempt_at)"
        " VALUES (gen_random_uuid(), %s, 'invoice.paid', %s, '{}', app_now())",
        (live.stranger, invoice),
    )
    wallet = live.post("/v1/wallet", WALLET, public_id="pk_stranger").json["result"]
    batch = live.post("/v1/payment/batch", {"payments": [{}]}, public_id="pk_stranger").json["result"]
    shared = {"recipient_merchant_id": str(live.shop), "percent": 5}
    row = base.one("SELECT id FROM webhook_deliveries")
    assert row is not None
    return Theirs(
        invoice=str(invoice),
        short=str(short),
        order="their-order",
        wallet=wallet["uuid"],
        wallet_address=wallet["address"],
        delivery=str(row[0]),
        payout=str(payout.id),
        payout_order=payout.order_id,
        link=link["link_id"],
        payment_link=opened(live, public_id="pk_stranger"),
        batch=batch["batch_id"],
        rule=live.post("/v1/split/rule", shared, public_id="pk_stranger").json["result"]["rule_id"],
    )


@pytest.fixture
def _untouched(live: Live, theirs: Theirs) -> Iterator[None]:
    del theirs

    def state() -> list[Any]:
        return [
            base.rows(f"SELECT * FROM {table} WHERE merchant_id = %s ORDER BY 1", (live.stranger,))
            for table in (
                "invoices",
                "deposits",
                "wallets",
                "webhook_deliveries",
                "webhook_endpoints",
                "payouts",
                "payout_links",
                "payment_links",
                "batches",
                "split_rules",
            )
        ]

    before = state()
    yield
    assert state() == before, "something of the stranger's changed"


def test_every_signed_endpoint_is_tried_or_has_a_reason() -> None:
    assert {endpoint.name for endpoint in SIGNED} == FOREIGN.keys() | OWN.keys()
    assert not FOREIGN.keys() & OWN.keys()
    for endpoint in SIGNED:
        fields = set(endpoint.request.__struct_fields__) if endpoint.request else set()
        # Any text, or a stranger's address, is not an object of another merchant.
        if endpoint.name in OWN and endpoint.name not in {"renderQr", "createPayout", "setAutoWithdraw"}:
            assert fields & IDS <= {"order_id"}, f"{endpoint.name} takes an id"


@pytest.mark.usefixtures("_untouched")
@pytest.mark.parametrize("endpoint", [e for e in SIGNED if e.name in FOREIGN], ids=lambda e: e.name)
def test_a_foreign_id_answers_exactly_like_a_missing_one(live: Live, theirs: Theirs, endpoint: Endpoint) -> None:
    for foreign, missing in FOREIGN[endpoint.name](theirs):
        ours, nobodys = live.post(endpoint.path, foreign), live.post(endpoint.path, missing)

        assert (ours.status_code, ours.text) == (nobodys.status_code, nobodys.text)
        assert {k: v for k, v in ours.headers.items() if k != "x-request-id"} == {
            k: v for k, v in nobodys.headers.items() if k != "x-request-id"
        }
        assert theirs.invoice not in ours.text


@pytest.mark.parametrize("endpoint", [e for e in SIGNED if e.name in FOREIGN], ids=lambda e: e.name)
def test_the_same_ids_are_there_for_their_owner(live: Live, theirs: Theirs, endpoint: Endpoint) -> None:
    foreign, missing = FOREIGN[endpoint.name](theirs)[0]

    answers = [live.post(endpoint.path, body, public_id="pk_stranger") for body in (foreign, missing)]

    assert answers[0].text != answers[1].text, "the test above would compare nothing"


@pytest.mark.usefixtures("_untouched")
def test_an_order_id_of_another_merchant_is_free(live: Live, theirs: Theirs) -> None:
    order = {"order_id": theirs.order}
    payment = {"amount": "10", "currency": "USD", "to_currency": "USDT", "network": "ethereum"} | order

    made = [live.post("/v1/payment", payment | more).json["result"] for more in ({}, {"is_refresh": True})]
    wallet = live.post("/v1/wallet", WALLET | order).json["result"]

    assert made[0]["uuid"] == made[1]["uuid"] != theirs.invoice
    assert wallet["uuid"] != theirs.wallet
    assert wallet["address"] != theirs.wallet_address


def test_an_idempotency_key_of_another_merchant_is_free(live: Live) -> None:
    body = {"amount": "10", "currency": "USD"}
    answers = [
        live.post("/v1/payment", body, public_id=public_id, headers={"Idempotency-Key": "k"})
        for public_id in ("pk_unified", "pk_stranger")
    ]

    assert answers[0].json["result"]["uuid"] != answers[1].json["result"]["uuid"]
    assert not [answer for answer in answers if "idempotent-replayed" in answer.headers]


@pytest.mark.usefixtures("_untouched", "theirs")
def test_settings_and_reads_are_of_the_callers_own_merchant(live: Live) -> None:
    assert live.post("/v1/webhooks/test", {}).json["error"]["code"] == "webhook.no_url"
    live.post("/v1/ip-allowlist", {"ips": ["127.0.0.1"]})
    assert live.post("/v1/ip-allowlist", {}, public_id="pk_stranger").json["result"] == {"ips": []}
    live.post("/v1/payment/discount", WALLET | {"discount_percent": 50}, public_id="pk_stranger")
    assert live.post("/v1/payment/discount", {}).json["result"] == {"items": []}
    live.post("/v1/split/config/set", {"enabled": False}, public_id="pk_stranger")
    assert live.post("/v1/split/rule/list", {}).json["result"] == {"items": []}
    assert live.post("/v1/split/config/get", {}).json["result"]["enabled"] is True
    custody = Account(UUID(int=0), "custody", "USDT", "bsc")
    with base.transaction():
        post("test", [Transfer(custody, Account(live.stranger, "available", "USDT"), 7 * UNIT)])
    assert all(item["total"] == "0" for item in live.post("/v1/balance", {}).json["result"]["items"])


@pytest.mark.usefixtures("theirs")
def test_a_cursor_of_another_merchants_page_shows_nothing_of_theirs(live: Live, theirs: Theirs) -> None:
    for _ in range(2):
        add_invoice(live.stranger)
    cursor = live.post("/v1/payment/history", {"limit": 1}, public_id="pk_stranger").json["result"]["next_cursor"]
    mine = live.invoice()

    page = live.post("/v1/payment/history", {"cursor": cursor})

    assert theirs.invoice not in page.text
    assert {item["uuid"] for item in page.json["result"]["items"]} <= {mine}
