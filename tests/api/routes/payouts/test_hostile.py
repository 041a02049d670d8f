"""Hostile requests for payouts at every endpoint: amounts, addresses, fields and keys of a thief's choice.

Each endpoint has a request that would be accepted without the test's change. A refused request holds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import pytest
from falcon import testing

from models.db import base
from tests.api.conftest import NOW, code_of
from tests.api.live import Live
from tests.api.routes.refunds.rows import ELSEWHERE, PAYER, blocked_wallet, paid_payment, short_payment
from tests.api.rows import UNIT, add_deposit
from tests.models.ledger.figures import balances_of
from tests.models.payouts.builders import RECIPIENT, charge, fund
from tests.models.payouts.held import require_cosign

FUNDS: Final = 100 * UNIT
METHOD: Final = {"currency": "USDT", "network": "ethereum"}
TRANSFER: Final = "/v1/transfer/to-personal"


@dataclass(frozen=True)
class Door:
    """A way for money to leave: where it is, a good request, and the code for a bad amount."""

    path: str
    body: Callable[[Live], dict[str, Any]]
    bad_amount: str
    # For more than there is, and for more than ever leaves at once.
    too_much: str = ""
    immense: str = ""


DOORS: Final = {
    "payout": Door(
        "/v1/payout",
        lambda _: METHOD | {"order_id": "p-1", "amount": "25", "address": RECIPIENT},
        "payout.bad_amount",
        too_much="payout.insufficient_funds",
        immense="payout.bad_amount",
    ),
    "cheque": Door(
        "/v1/payout/link",
        lambda _: METHOD | {"reference": "c-1", "amount": "25"},
        "payoutlink.bad_amount",
        too_much="payoutlink.insufficient_funds",
        immense="payoutlink.bad_amount",
    ),
    "refund": Door(
        "/v1/payment/refund",
        lambda live: paid_payment(live) | {"amount": "4"},
        "refund.bad_amount",
        too_much="refund.exceeds_refundable",
    ),
    "transfer": Door(
        TRANSFER,
        lambda _: {"currency": "USDT", "amount": "25", "order_id": "t-1"},
        "transfer.bad_amount",
        too_much="personal.insufficient",
    ),
}
EACH_DOOR: Final = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())

NO_AMOUNTS: Final = [
    "1e1", "1E1", "+1", "-1", "1,5", "1_000", "1 000", " 1", "1 ", "1\n", "", ".5", "1.", "1.2.3", "0x10", "1/2", "NaN",
    "Infinity", "\u0661\u0662", "\uff11\uff12", "1\u0000", "0.0000001", "1.0000000", "0." + "0" * 18 + "1",
    str(2**256), "9" * 31, 1, 1.5, -1, 10**400, True, ["1"], {"amount": "1"},
]  # fmt: skip


@pytest.fixture
def rich(live: Live) -> Live:
    """A merchant with 100 USDT, at a gateway that knows what a transfer costs."""
    fund(live.shop, FUNDS)
    charge()
    return live


def statuses() -> dict[str, str]:
    """Return the status of each payout by its kind."""
    return dict(base.rows("SELECT kind, status FROM payouts"))


def made(merchant_id: UUID) -> int:
    """Count what a merchant ordered to leave."""
    tables = ("payouts", "payout_links", "personal_transfers")
    counted = " UNION ALL ".join(f"SELECT id FROM {name} WHERE merchant_id = %s" for name in tables)
    return int(base.rows(f"SELECT count(*) FROM ({counted}) found", (merchant_id,) * len(tables))[0][0])


# Amounts ------------------------------------------------------------------------------------------------------------


@EACH_DOOR
def test_no_endpoint_accepts_an_invalid_amount(rich: Live, door: Door) -> None:
    body = door.body(rich)

    for amount in NO_AMOUNTS:
        answer = rich.post(door.path, body | {"amount": amount})
        assert (answer.status_code, code_of(answer)) == (400, door.bad_amount), amount
    for nothing in ("0", "0.000000", "000"):
        assert code_of(rich.post(door.path, body | {"amount": nothing})) == door.bad_amount, nothing
    assert (made(rich.shop), balances_of(rich.shop)) == (0, {"available": FUNDS})


@EACH_DOOR
def test_the_largest_amount_there_is_finds_too_little(rich: Live, door: Door) -> None:
    body = door.body(rich)

    assert code_of(rich.post(door.path, body | {"amount": "100.000001"})) == door.too_much
    for amount in ("9" * 30, "9" * 30 + ".999999"):
        assert code_of(rich.post(door.path, body | {"amount": amount})) == (door.immense or door.too_much)
    assert (made(rich.shop), balances_of(rich.shop)) == (0, {"available": FUNDS})
    assert rich.post(door.path, body).status_code == 200


def test_the_largest_conversion_there_is_finds_too_little(rich: Live) -> None:
    charge("ETH", units=10**15)
    order = {"order_id": "p-1", "currency": "ETH", "network": "ethereum", "address": RECIPIENT, "from_currency": "USDT"}

    assert code_of(rich.post("/v1/payout", order | {"amount": "9" * 5})) == "payout.convert_frozen"
    for amount in ("9" * 30, "9" * 30 + "." + "9" * 18):
        assert code_of(rich.post("/v1/payout", order | {"amount": amount})) == "payout.bad_amount"
    assert (made(rich.shop), balances_of(rich.shop)) == (0, {"available": FUNDS})


# Addresses ----------------------------------------------------------------------------------------------------------

# A reader of each believes that it is RECIPIENT, or some address.
LOOK_ALIKES: Final = [
    RECIPIENT.replace("E", "\u0415"),
    RECIPIENT.replace("0", "O"),
    RECIPIENT.replace("5", "\uff15"),
    RECIPIENT[:20] + "\u200b" + RECIPIENT[20:],
    "\u202e" + RECIPIENT,
    RECIPIENT + "\n",
    RECIPIENT + " ",
    RECIPIENT[:-1],
    RECIPIENT.replace("E7", "e7"),
    "0X" + RECIPIENT[2:],
    "vitalik.eth",
    "0x" + "0" * 40,
    "0x000000000000000000000000000000000000dEaD",
    "0x" + "f" * 40,
]


@pytest.mark.parametrize("name", ["payout", "refund"])
def test_no_address_that_only_looks_like_one_is_paid(rich: Live, name: str) -> None:
    door = DOORS[name]
    body = door.body(rich)

    for address in LOOK_ALIKES:
        assert code_of(rich.post(door.path, body | {"address": address})) == f"{name}.bad_address", ascii(address)
    assert (made(rich.shop), balances_of(rich.shop)) == (0, {"available": FUNDS})


def test_a_cheque_stays_funded_whatever_looks_like_an_address(rich: Live) -> None:
    link = rich.post("/v1/payout/link", DOORS["cheque"].body(rich)).json["result"]
    claim = f"/v1/claim/{link['claim_token']}"

    for address in LOOK_ALIKES:
        answer = rich.client.public_post(claim, {"address": address})
        assert code_of(answer) == "payoutlink.bad_address", ascii(address)
    assert rich.client.simulate_get(claim).json["result"]["status"] == "funded"
    assert rich.client.public_post(claim, {"address": RECIPIENT}).json["result"]["status"] == "claimed"


# Fields that the caller must not set --------------------------------------------------------------------------------


def everything(live: Live) -> dict[str, Any]:
    """Return the names of columns and views with what a thief would like to see in them."""
    return {
        "uuid": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d", "id": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d",
        "merchant_id": str(live.stranger), "owner_id": str(live.stranger), "principal": "pk_stranger",
        "created_by": "pk_stranger", "status": "confirmed", "kind": "resolve", "funded_from": "suspense",
        "hold_reference": "payout:mine:hold", "invoice_id": str(live.stranger), "wallet_id": str(live.stranger),
        "fee_units": 0, "amount_units": 1, "to_units": 10**30, "held_units": 0, "commission": "0", "rate": "1000000",
        "from_units": 1, "is_final": True, "approval_required": False, "is_approval_required": False, "is_payer": True,
        "txid": "0x" + "ab" * 32, "error": "x", "due_at": "1970-01-01T00:00:00Z", "created_at": "1970-01-01T00:00:00Z",
        "request_id": "mine", "claim_token": "A" * 43, "token_hash": "A" * 43, "payout_id": str(live.stranger),
        "claim_address": ELSEWHERE, "batch_id": str(live.stranger), "personal_balance": "1000", "direction": "to_me",
    }  # fmt: skip


def table_of(door: Door) -> str:
    return {"/v1/payout/link": "payout_links", TRANSFER: "personal_transfers"}.get(door.path, "payouts")


@EACH_DOOR
def test_fields_that_the_caller_must_not_set_are_ignored(rich: Live, door: Door) -> None:
    body = door.body(rich)
    thief = {name: value for name, value in everything(rich).items() if name not in body}

    answer = rich.post(door.path, body | thief)

    assert answer.status_code == 200, answer.text
    ((written,),) = base.rows(f"SELECT row_to_json(t) FROM {table_of(door)} t")
    assert (written["merchant_id"], written["created_by"]) == (str(rich.shop), "pk_unified")
    same = {name for name, value in thief.items() if name in written and written[name] == value and value is not False}
    assert not same, "the caller chose"
    assert balances_of(rich.shop).get("available") != FUNDS
    assert balances_of(rich.stranger) == {}


# Keys ---------------------------------------------------------------------------------------------------------------


def test_an_order_is_paid_once_whatever_key_it_comes_with(rich: Live) -> None:
    order = DOORS["payout"].body(rich)

    answers = [
        rich.post("/v1/payout", order, headers=headers, timestamp=str(NOW + late))
        for late, headers in enumerate(({}, {"Idempotency-Key": "a"}, {"Idempotency-Key": "b"}, {}))
    ]

    assert len({answer.json["result"]["uuid"] for answer in answers}) == 1
    assert made(rich.shop) == 1
    other = rich.post("/v1/payout", order | {"order_id": "p-2"}, headers={"Idempotency-Key": "a"})
    assert (other.status_code, code_of(other)) == (409, "idempotency.key_reused")


@EACH_DOOR
def test_a_captured_request_moves_money_once_under_whatever_key(rich: Live, door: Door) -> None:
    body = {name: value for name, value in door.body(rich).items() if name != "reference"}
    if door.path == TRANSFER:
        del body["order_id"]

    sent = [rich.post(door.path, body, headers={"Idempotency-Key": key}) for key in ("k", "l", "k")]

    assert [answer.status_code for answer in sent] == [200, 200, 200]
    assert sent[0].json["result"] == sent[1].json["result"] == sent[2].json["result"]
    assert made(rich.shop) == 1


def test_an_order_of_another_merchants_is_free(rich: Live) -> None:
    fund(rich.stranger, FUNDS)
    bodies = {name: DOORS[name].body(rich) for name in ("payout", "cheque", "transfer")}

    for name, body in bodies.items():
        mine = rich.post(DOORS[name].path, body)
        theirs = rich.post(DOORS[name].path, body, public_id="pk_stranger")
        assert (mine.status_code, theirs.status_code) == (200, 200)
        assert mine.json["result"].get("uuid", 0) != theirs.json["result"].get("uuid", 1)
    mass = rich.post("/v1/payout/mass", {"payouts": [bodies["payout"]]}, public_id="pk_stranger").json["result"]
    assert mass["items"][0]["uuid"] == str(
        base.rows("SELECT id FROM payouts WHERE merchant_id = %s", (rich.stranger,))[0][0]
    )
    assert (made(rich.shop), made(rich.stranger)) == (3, 3)


# Two signatures -----------------------------------------------------------------------------------------------------


def leave_by_every_door(live: Live) -> list[testing.Result]:
    """Ask with one key for money to leave by every door that leads to an address."""
    payout = DOORS["payout"].body(live)
    link = live.post("/v1/payout/link", DOORS["cheque"].body(live)).json["result"]
    short, mixed = short_payment(live), paid_payment(live)
    stray = {"currency": "USDT", "amount_units": 5 * UNIT, "sender": PAYER.lower(), "txid": "0x" + "cd" * 32}
    add_deposit(live.shop, mixed["uuid"], **stray)
    fund(live.shop, 10 * UNIT, kind="suspense")
    return [
        live.post("/v1/payout", payout),
        live.post("/v1/payout/mass", {"payouts": [payout | {"order_id": "p-2", "amount": "5"}]}),
        live.client.public_post(f"/v1/claim/{link['claim_token']}", {"address": RECIPIENT}),
        live.post("/v1/payment/refund", paid_payment(live)),
        live.post("/v1/payment/resolve", short),
        live.post("/v1/payment/resolve", {"uuid": mixed["uuid"], "action": "refund", "txid": "0x" + "cd" * 32}),
        live.post("/v1/wallet/blocked-address-refund", blocked_wallet(live)),
    ]


@pytest.mark.parametrize(("is_required", "expected"), [(False, "approved"), (True, "awaiting_cosign")])
def test_where_two_have_to_sign_no_door_lets_one_key_send_money(
    rich: Live, *, is_required: bool, expected: str
) -> None:
    require_cosign(rich.shop, is_required=is_required)

    answers = leave_by_every_door(rich)

    assert [answer.status_code for answer in answers] == [200] * 7, [answer.text for answer in answers]
    kinds = ("payout", "cheque", "refund", "resolve", "stray", "wallet_refund")
    assert statuses() == dict.fromkeys(kinds, expected)
    for (payout_id,) in base.rows("SELECT id FROM payouts"):
        own = rich.post("/v1/payout/approve", {"uuid": str(payout_id)})
        assert code_of(own) == ("payout.approver_is_creator" if is_required else "payout.not_pending")
    if is_required:
        cheque = {"uuid": answers[2].json["result"]["payout_id"]}
        assert rich.post("/v1/payout/approve", cheque, public_id="pk_payout").json["result"]["status"] == "process"
