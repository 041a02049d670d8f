"""Each way out of a merchant does as core.payouts.ways_out says, over HTTP; and no route that changes is left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from actors.batches.ticks import run_batches
from actors.merchants.shares import release_splits
from actors.payouts.ticks import withdraw_balances
from api.routes import ENDPOINTS
from core.errors import PayoutFrozen
from core.ids import uuid7
from core.payout_links.tokens import ClaimTokens
from core.payouts import ways_out
from core.payouts.ways_out import WAYS, Way
from core.secrets.secretbox import SecretBox
from models.db import base
from models.invoices import rows as invoices
from models.ledger import ledger
from models.ledger.ledger import DEBT, HOLD, Account, Transfer
from models.merchants import notices
from models.merchants import rows as merchants
from models.merchants.emails import EmailRow
from models.outcomes import disowned
from models.payouts import freezes
from tests.api.conftest import code_of
from tests.api.live import Live
from tests.api.routes.payout_links.rows import ANN
from tests.api.routes.refunds.rows import ELSEWHERE, blocked_wallet, paid_payment, short_payment
from tests.api.rows import CREATED, UNIT, add_deposit
from tests.models.builders import CATALOGUE
from tests.models.invoices.builders import requote
from tests.models.payouts.builders import charge, fund, lend
from tests.models.payouts.held import payout
from tests.models.treasury.builders import hold

FIRST: Final = "pk_" + "a" * 24
SECOND: Final = "pk_" + "b" * 24
THIRD: Final = "pk_" + "c" * 24
FROZEN: Final = "payout.frozen"

# Routes that change something, and by which no money leaves sooner or elsewhere.
MOVES_NOTHING_OUT: Final = {
    "/v1/payment": "a sale",
    "/v1/payment/batch": "sales",
    "/v1/payment/link": "sales",
    "/v1/payment/link/toggle": "sales",
    "/v1/link/{link_id}/checkout": "a sale",
    "/v1/pay/{invoice_id}/select": "a buyer's choice of a coin",
    "/v1/payment/accepted": "coins that are taken",
    "/v1/payment/discount": "prices",
    "/v1/payment/accuracy": "prices",
    "/v1/payment/resend": "a webhook again",
    "/v1/payment/send-email": "an e-mail",
    "/v1/wallet": "a deposit address",
    "/v1/wallet/block": "keeps money in suspense",
    "/v1/payout/link/cancel": "returns money to the balance",
    "/v1/payout/cancel": "returns money to the balance",
    "/v1/payout/fee-settings": "whether the fee is in the amount",
    "/v1/split/rule/delete": "ends a rule",
    "/v1/webhooks/redeliver": "a webhook again",
    "/v1/webhooks/test": "a webhook without an event",
}
# POST because their question is a body.
READS: Final = {
    "/v1/balance", "/v1/batch/info", "/v1/exchange-rate/list", "/v1/payment/history", "/v1/payment/info",
    "/v1/payment/link/info", "/v1/payment/link/list", "/v1/payment/qr", "/v1/payment/services", "/v1/payment/timeline",
    "/v1/payout/calculate", "/v1/payout/history", "/v1/payout/info", "/v1/payout/link/info", "/v1/payout/link/list",
    "/v1/payout/services", "/v1/split/config/get", "/v1/split/rule/list", "/v1/wallet/info", "/v1/wallet/qr",
    "/v1/webhooks/deliveries",
}  # fmt: skip


@dataclass
class Shop:
    """A merchant with three keys, and what was asked of it last."""

    live: Live
    number: int = 0

    @property
    def id(self) -> UUID:
        return self.live.shop

    def post(self, path: str, body: dict[str, Any], key: str = FIRST) -> Any:
        """Return the result, or the code of the error."""
        answer = self.live.post(path, body, public_id=key)
        if answer.status_code == 201:
            return answer.json
        return answer.json["result"] if answer.status_code == 200 else code_of(answer)

    def order(self, **fields: Any) -> dict[str, Any]:
        self.number += 1
        payout_of = {"currency": "USDT", "network": "ethereum", "amount": "10"}
        return payout_of | {"address": ANN, "order_id": f"order-{self.number}"} | fields

    def newest(self) -> tuple[UUID, str]:
        row = base.one("SELECT id, status FROM payouts WHERE merchant_id = %s ORDER BY id DESC LIMIT 1", (self.id,))
        assert row is not None
        return row[0], row[1]


# Prepares an order, and returns what asks for it: that returns a code, "" where it was taken.
Ask = Callable[[str], str]
Case = Callable[[Shop], Ask]


def plain(path: str, make: Callable[[Shop], dict[str, Any]]) -> Case:
    def case(shop: Shop) -> Ask:
        body = make(shop)

        def ask(key: str) -> str:
            answer = shop.post(path, body, key)
            return answer if isinstance(answer, str) else ""

        return ask

    return case


def mass(shop: Shop) -> Ask:
    body = {"payouts": [shop.order()]}
    return lambda key: _of_item(shop.post("/v1/payout/mass", body, key)["items"][0])


def links(shop: Shop) -> Ask:
    body = {"links": [cheque(shop)]}
    return lambda key: _of_item(shop.post("/v1/payout/link/batch", body, key)["items"][0])


def _of_item(item: dict[str, Any]) -> str:
    if item["success"]:
        return ""
    # A mass payout's item has the message alone.
    assert PayoutFrozen().message in str(item)
    return FROZEN


def batch(path: str, name: str, make: Callable[[Shop], dict[str, Any]]) -> Case:
    def case(shop: Shop) -> Ask:
        body = {name: [make(shop)]}

        def ask(key: str) -> str:
            batch_id = shop.post(path, body, key)["batch_id"]
            run_batches()
            [item] = shop.post("/v1/batch/info", {"batch_id": batch_id})["items"]
            return "" if item["status"] == "success" else FROZEN if FROZEN in str(item) else str(item)

        return ask

    return case


def cheque(shop: Shop) -> dict[str, Any]:
    # The same batch, signed within the same second, would get the first answer.
    return {"currency": "USDT", "network": "ethereum", "amount": "10", "reference": shop.order()["order_id"]}


def claim(shop: Shop) -> Ask:
    """The claim is the order; the cheque is there before."""
    token = shop.post("/v1/payout/link", cheque(shop))["claim_token"]

    def ask(_key: str) -> str:
        answer = shop.live.client.public_post(f"/v1/claim/{token}", {"address": ANN})
        return "" if answer.status_code == 200 else code_of(answer)

    return ask


def approval(shop: Shop) -> Ask:
    waiting = payout(shop.id, status="awaiting_cosign", created_by="cabinet:someone")
    return lambda key: _code(shop.post("/v1/payout/approve", {"uuid": str(waiting.id)}, key))


def _code(answer: Any) -> str:
    return answer if isinstance(answer, str) else ""


def refund(shop: Shop, **fields: Any) -> dict[str, Any]:
    paid = paid_payment(shop.live)
    # When a refund is cancelled its payment is judged again.
    requote(invoices.reread(UUID(paid["uuid"])), 10 * UNIT, valid_from=CREATED)
    return paid | {"amount": "1"} | fields


def resolved(shop: Shop, **fields: Any) -> dict[str, Any]:
    return short_payment(shop.live) | fields


RULE: Final = {"currency": "USDT", "network": "ethereum", "address": ANN, "threshold": "20"}
_WITHOUT_COIN: Final = {"network": "ethereum", "address": ANN, "threshold": "1"}
CASES: Final[dict[tuple[Way, str], Case]] = {
    (ways_out.PAYOUT, "/v1/payout"): plain("/v1/payout", Shop.order),
    (ways_out.PAYOUT, "/v1/payout/mass"): mass,
    (ways_out.PAYOUT, "/v1/payout/batch"): batch("/v1/payout/batch", "payouts", Shop.order),
    (ways_out.CHEQUE, "/v1/payout/link"): plain("/v1/payout/link", cheque),
    (ways_out.CHEQUE, "/v1/payout/link/batch"): links,
    (ways_out.CHEQUE, "/v1/claim/{token}"): claim,
    (ways_out.TO_PAYER, "/v1/payment/refund"): plain("/v1/payment/refund", refund),
    (ways_out.TO_PAYER, "/v1/refund/batch"): batch("/v1/refund/batch", "refunds", refund),
    (ways_out.TO_PAYER, "/v1/payment/resolve"): plain("/v1/payment/resolve", resolved),
    (ways_out.ELSEWHERE, "/v1/payment/refund"): plain("/v1/payment/refund", lambda s: refund(s, address=ELSEWHERE)),
    (ways_out.ELSEWHERE, "/v1/refund/batch"): batch(
        "/v1/refund/batch", "refunds", lambda s: refund(s, address=ELSEWHERE)
    ),
    (ways_out.ELSEWHERE, "/v1/payment/resolve"): plain("/v1/payment/resolve", lambda s: resolved(s, address=ELSEWHERE)),
    (ways_out.BLOCKED_WALLET, "/v1/wallet/blocked-address-refund"): plain(
        "/v1/wallet/blocked-address-refund", lambda s: blocked_wallet(s.live)
    ),
    (ways_out.SPLIT, "/v1/split/rule"): plain(
        "/v1/split/rule", lambda s: {"recipient_merchant_id": str(s.live.stranger), "percent": 1}
    ),
    (ways_out.WITHDRAWAL, "/v1/auto-withdraw"): plain("/v1/auto-withdraw", lambda _: dict(RULE)),
    (ways_out.TRANSFER, "/v1/transfer/to-personal"): plain(
        "/v1/transfer/to-personal", lambda s: {"currency": "USDT", "amount": "1", "order_id": s.order()["order_id"]}
    ),
    (ways_out.APPROVAL, "/v1/payout/approve"): approval,
    (ways_out.SPLIT_SETTINGS, "/v1/split/config/set"): plain("/v1/split/config/set", lambda _: {"enabled": True}),
    (ways_out.ALLOWLIST, "/v1/ip-allowlist"): plain("/v1/ip-allowlist", lambda _: {"ips": ["127.0.0.1"]}),
    (ways_out.WEBHOOK, "/v1/webhooks"): plain("/v1/webhooks", lambda _: {"url": "https://1.1.1.1/hook"}),
}


@pytest.fixture
def shop(live: Live, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A rich merchant, and a gateway that has what it owes."""
    monkeypatch.setattr("actors.batches.ticks._round._reached", UUID(int=0))
    for key in (FIRST, SECOND, THIRD):
        live.keys.add(key, "unified", live.shop)
        base.execute(
            "INSERT INTO api_keys (id, public_id, merchant_id, kind, label, secret_box)"
            " VALUES (%s, %s, %s, 'unified', '', 'kid:none')",
            (uuid7(), key, live.shop),
        )
    live.client.public_id = FIRST
    fund(live.shop, 1_000 * UNIT)
    charge(units=UNIT // 10)
    hold("USDT", "ethereum", 10_000 * UNIT)
    hold("ETH", "ethereum", UNIT)
    return Shop(live)


def put_share(shop: Shop, *, cosigner: str = "") -> UUID:
    """Let a share by a rule of the first key wait, due. cosigner: of that rule."""
    deposit_id, share_id = uuid7(), uuid7()
    add_deposit(shop.id, uuid7(), id=deposit_id, status="credited", txid=f"0x{deposit_id.hex}")
    with base.transaction():
        ledger.post(
            f"test:{share_id}",
            [Transfer(Account(uuid7(), DEBT, "USDT"), Account(shop.id, HOLD, "USDT"), UNIT)],
        )
        base.execute(
            "INSERT INTO split_shares (id, deposit_id, round, rule_id, merchant_id, recipient_id, currency,"
            " percent_ppm, units, left_units, release_at, is_mature, set_by, cosigned_by)"
            " VALUES (%s, %s, 0, %s, %s, %s, 'USDT', 10000, %s, %s, app_now(), true, %s, %s)",
            (share_id, deposit_id, uuid7(), shop.id, shop.live.stranger, UNIT, UNIT, FIRST, cosigner),
        )
    return share_id


def where(share_id: UUID) -> str:
    row = base.one("SELECT left_units, released_units, returned_units FROM split_shares WHERE id = %s", (share_id,))
    assert row is not None
    return next(place for place, units in zip(("waits", "released", "returned"), row, strict=True) if units)


def leaves(shop: Shop, way: Way) -> bool:
    """Return whether money goes by a rule that is in force."""
    if way is ways_out.SPLIT:
        share = put_share(shop)
        release_splits()
        return where(share) == "released"
    base.execute("UPDATE payouts SET status = 'cancelled' WHERE kind = 'autowithdraw'")
    fund(shop.id, 30 * UNIT)
    base.execute("UPDATE withdrawal_rules SET due_at = app_now(), payout_id = NULL, failures = 0")
    before = base.value("SELECT count(*) FROM payouts")
    withdraw_balances()
    return bool(base.value("SELECT count(*) FROM payouts") > before)


def is_stopped(shop: Shop, way: Way, case: Case, stop: Callable[[], object], end: Callable[[], object]) -> bool:
    """Return whether a way is closed between stop and end."""
    ask = case(shop)
    stop()
    answer = ask(FIRST)
    if way.freeze == "waits":
        assert answer == "", "a rule is taken"
        stopped = not leaves(shop, way)
    else:
        assert answer in {"", FROZEN}
        stopped = answer == FROZEN
    end()
    assert way.freeze != "waits" or leaves(shop, way), "and goes on by itself"
    return stopped


@pytest.mark.parametrize(("way", "route"), CASES, ids=[f"{way.title}: {route}" for way, route in CASES])
def test_a_way_out_does_as_the_table_says(shop: Shop, way: Way, route: str) -> None:
    case = CASES[way, route]
    name = str(shop.id)
    frozen = is_stopped(
        shop,
        way,
        case,
        lambda: freezes.freeze("merchant", name, reason="test", frozen_by="test"),
        lambda: freezes.unfreeze("merchant", name),
    )
    owing = {
        "own coin": is_stopped(shop, way, case, lambda: lend(shop.id, 5), lambda: lend(shop.id, -5)),
        "any coin": is_stopped(shop, way, case, lambda: lend(shop.id, 5, "ETH"), lambda: lend(shop.id, -5, "ETH")),
    }

    assert frozen == (way.freeze != "goes on")
    assert owing == {"own coin": way.debt != "none", "any coin": way.debt == "any coin"}

    check_signers(shop, way, case)
    check_second_voice(shop, way, case)
    check_revocation(shop, way, case)


def check_signers(shop: Shop, way: Way, case: Case) -> None:
    merchants.set_cosign(shop.id, is_required=True)
    _forget_rules()
    ask = case(shop)
    assert ask(FIRST) == ""
    if way.cosign == "twice":
        table = "split_rules" if way is ways_out.SPLIT else "withdrawal_rules"
        assert (base.value(f"SELECT is_pending FROM {table}"), way is ways_out.SPLIT or not leaves(shop, way)) == (
            True,
            True,
        )
        assert ask(SECOND) == ""
        assert base.value(f"SELECT is_pending FROM {table}") is False
    elif way.cosign != "one":
        _claim(shop, way)
        waiting, status = shop.newest()
        assert status == ("pending" if way.cosign == "approval" else "awaiting_cosign")
        assert _code(shop.post("/v1/payout/approve", {"uuid": str(waiting)})) == "payout.approver_is_creator"
        assert _code(shop.post("/v1/payout/approve", {"uuid": str(waiting)}, SECOND)) == ""
        assert shop.newest()[1] == ("awaiting_cosign" if way.cosign == "approval" else "approved")
    merchants.set_cosign(shop.id, is_required=False)


def check_second_voice(shop: Shop, way: Way, case: Case) -> None:
    """Let a key agree to what another one ordered, revoke it, and see that this ends."""
    if way.cosigner_revoked == "none":
        assert way.cosign == "one", "there is no second voice"
        return
    merchants.set_cosign(shop.id, is_required=True)
    _forget_rules()
    ask = case(shop)
    assert ask(FIRST) == ""
    share = put_share(shop, cosigner=THIRD)
    if way.cosign == "twice":
        assert ask(THIRD) == ""
        assert rules_in_force(shop) == [way]
        assert way is ways_out.SPLIT or leaves(shop, way), "by the word of two"
    else:
        _claim(shop, way)
        assert _code(shop.post("/v1/payout/approve", {"uuid": str(shop.newest()[0])}, THIRD)) == ""
    agreed = shop.newest() if way.cosigner_revoked == "cancelled" else None
    assert agreed is None or agreed[1] in {"awaiting_cosign", "approved"}

    disowned.revoke(CATALOGUE, THIRD)
    release_splits()

    assert where(share) == "returned", "whichever way is walked"
    assert agreed is None or shop.newest() == (agreed[0], "cancelled")
    if way.cosign == "twice":
        assert rules_in_force(shop) == []
        assert way is ways_out.SPLIT or not leaves(shop, way)
    merchants.set_cosign(shop.id, is_required=False)


def rules_in_force(shop: Shop) -> list[Way]:
    """Return the ways for which the merchant is shown a rule that is active."""
    lists = {ways_out.SPLIT: "/v1/split/rule/list", ways_out.WITHDRAWAL: "/v1/auto-withdraw"}
    shown = {way: shop.post(path, {}, SECOND)["items"] for way, path in lists.items()}
    return [way for way, items in shown.items() if any(item["status"] == "active" for item in items)]


def _forget_rules() -> None:
    base.execute("DELETE FROM split_rules")
    base.execute("DELETE FROM withdrawal_rules")


def _claim(shop: Shop, way: Way) -> None:
    """Claim the newest cheque, unless that was the order."""
    row = base.one(
        "SELECT id FROM payout_links WHERE merchant_id = %s AND status = 'funded' ORDER BY id DESC", (shop.id,)
    )
    if way is ways_out.CHEQUE and row is not None:
        token = ClaimTokens(shop.live.settings.secret_keys)
        token_text = token.token(row[0], token.current)
        assert shop.live.client.public_post(f"/v1/claim/{token_text}", {"address": ANN}).status_code == 200


def check_revocation(shop: Shop, way: Way, case: Case) -> None:
    _forget_rules()
    assert case(shop)(FIRST) == ""
    share = put_share(shop)
    if way is ways_out.WITHDRAWAL:
        assert leaves(shop, way)
    before = base.value("SELECT max(id::text) FROM payouts")

    disowned.revoke(CATALOGUE, FIRST)
    release_splits()

    assert where(share) == "returned", "whichever way is walked"
    statuses = {status for (status,) in base.rows("SELECT status FROM payouts WHERE created_by = %s", (FIRST,))}
    assert not statuses & {"pending", "awaiting_cosign", "approved"}
    assert not base.rows("SELECT 1 FROM payout_links WHERE status = 'funded'")
    if way is ways_out.APPROVAL:
        assert shop.newest() == (UUID(before), "cancelled"), "nor goes what it approved"
    if way.revocation == "stays":
        assert base.value("SELECT max(id::text) FROM payouts") == before
    if way in {ways_out.SPLIT, ways_out.WITHDRAWAL}:
        assert shop.post("/v1/split/rule/list", {}, SECOND)["items"] == []
        assert not [r for r in shop.post("/v1/auto-withdraw", {}, SECOND)["items"] if r["status"] != "off"]


def test_the_owner_gets_a_notice_of_each_change_by_one_key(shop: Shop) -> None:
    shop.live.configure(SMTP_URL="smtp://127.0.0.1:1")
    with base.transaction():
        notices.set_address(shop.id, "owner@mail.example")
    changes = (
        (ways_out.SPLIT, "Split rule, active: 1 percent to merchant"),
        (ways_out.WITHDRAWAL, f"USDT on ethereum, active: to {ANN} from 20 on."),
        (ways_out.TRANSFER, "1 USDT went to the owner's personal wallet."),
        (ways_out.SPLIT_SETTINGS, "Splits are on; shares wait 0 hours."),
        (ways_out.ALLOWLIST, "API keys may sign from: 127.0.0.1"),
        (ways_out.WEBHOOK, "Webhooks go to https://1.1.1.1/hook, signed with a new secret."),
    )
    for way, _ in changes:
        base.execute("UPDATE merchants SET is_split_enabled = %s", (way is not ways_out.SPLIT_SETTINGS,))
        assert CASES[way, way.routes[0]](shop)(FIRST) == ""
    [rule] = shop.post("/v1/split/rule/list", {})["items"]
    assert shop.post("/v1/split/rule/delete", {"rule_id": rule["rule_id"]})["deleted"]
    for path in ("/v1/auto-withdraw", "/v1/ip-allowlist"):
        assert isinstance(shop.post(path, {}), dict), "who only reads changes nothing"

    [email] = EmailRow.read("e.kind = 'notice'")
    content = notices._decode.decode(email.open(SecretBox(shop.live.settings.secret_keys)))
    assert [change.by for change in content.changes] == [FIRST] * 7
    texts = [change.text for change in content.changes]
    assert [expected in text for text, (_, expected) in zip(texts, changes, strict=False)] == [True] * 6
    assert texts[-1] == f"The split rule {rule['rule_id']} ended."


def test_the_owner_gets_no_notice_without_a_change(shop: Shop) -> None:
    shop.live.configure(SMTP_URL="smtp://127.0.0.1:1")
    base.execute("UPDATE merchants SET ip_allowlist = '{10.0.0.1,127.0.0.1}', is_split_enabled = true")
    merchants.set_cosign(shop.id, is_required=True)
    rule = CASES[ways_out.SPLIT, "/v1/split/rule"](shop)
    for key in (FIRST, SECOND):
        shop.post("/v1/auto-withdraw", RULE, key)
    shop.post("/v1/auto-withdraw", {"currency": "ETH", **_WITHOUT_COIN})
    shop.post("/v1/auto-withdraw", {"currency": "ETH", "enabled": False})
    assert rule(FIRST) == ""
    with base.transaction():
        notices.set_address(shop.id, "owner@mail.example")

    for _ in range(2):
        assert rule(FIRST) == "", "it waits already"
        for path, body in (
            ("/v1/auto-withdraw", RULE), ("/v1/auto-withdraw", {"currency": "ETH", "enabled": False}),
            ("/v1/auto-withdraw", {"currency": "USDT", "enabled": True, "address": ANN}),
            ("/v1/split/config/set", {"enabled": True}), ("/v1/split/config/set", {"refund_hold_hours": 0}),
            ("/v1/ip-allowlist", {"ips": ["127.0.0.1", "10.0.0.1"]}),
        ):  # fmt: skip
            assert isinstance(shop.post(path, body), dict)

    assert EmailRow.read("true") == []
    assert rule(SECOND) == ""
    for body in (RULE | {"threshold": "21"}, {"currency": "USDT", "enabled": False}):
        shop.post("/v1/auto-withdraw", body)
    [email] = EmailRow.read("true")
    content = notices._decode.decode(email.open(SecretBox(shop.live.settings.secret_keys)))
    assert len(content.changes) == 3


def test_every_route_that_changes_something_is_a_way_out_or_moves_nothing() -> None:
    changing = {endpoint.path for endpoint in ENDPOINTS if endpoint.method == "POST"} - READS
    ways = {route for way in WAYS for route in way.routes}

    assert not ways & MOVES_NOTHING_OUT.keys()
    assert changing == ways | MOVES_NOTHING_OUT.keys()
    assert set(CASES) == {(way, route) for way in WAYS for route in way.routes}, "the walk leaves none out"


def test_a_reading_endpoint_calls_no_writing_actor() -> None:
    by_path = {endpoint.path: endpoint for endpoint in ENDPOINTS if endpoint.method == "POST"}

    assert [path for path in sorted(READS) if by_path[path].actor is not None] == []


def test_the_documentation_has_the_table() -> None:
    page = (Path(__file__).parents[4] / "docs" / "payouts-operations.md").read_text(encoding="utf-8")
    section = page.partition("## Ways out")[2].partition("\n## ")[0]
    shown = re.findall(
        r"^\| ([A-Z][^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", section, re.MULTILINE
    )

    assert shown[1:] == [
        (
            way.title,
            ", ".join(f"`{r}`" for r in way.routes),
            way.cosign,
            way.freeze,
            way.revocation,
            way.cosigner_revoked,
            way.debt,
        )
        for way in WAYS
    ]
