"""The commands that show stored objects: each by its number and in lists, and none that is not there."""

from __future__ import annotations

import io
import sys
from uuid import UUID, uuid4

import pytest

from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from models.db import base
from models.merchants import rows as merchants
from models.payouts import freezes
from models.webhooks import outbox
from tests.cli.conftest import CommandLine
from tests.models.builders import endpoint, merchant
from tests.models.invoices.builders import invoice
from tests.models.payouts.builders import rich_shop
from tests.models.payouts.held import payout

HOSTILE = "\x1b[2Jorder\u202e"


@pytest.fixture
def shop(sluice_db: CommandLine) -> UUID:
    base.connect(sluice_db.env["DATABASE_URL"])
    return merchant()


def test_a_payment_is_shown_and_listed_by_merchant_status_and_order(sluice_db: CommandLine, shop: UUID) -> None:
    first, second = invoice(shop, order_id="order-1"), invoice(merchant(), order_id=HOSTILE)
    shown = sluice_db("payment", "show", str(first.id), "--json").json
    assert (shown["uuid"], shown["merchant_id"], shown["order_id"]) == (str(first.id), str(shop), "order-1")
    assert "address_qr_code" not in shown

    def listed(*words: str) -> list[str]:
        return [each["uuid"] for each in sluice_db("payment", "list", *words, "--json").json["items"]]

    assert listed() == [str(second.id), str(first.id)]
    assert listed("--limit", "1") == [str(second.id)]
    assert listed("--merchant", str(shop)) == listed("--order", "order-1") == [str(first.id)]
    assert listed("--status", first.status) == listed()
    assert listed("--status", "paid") == []
    assert sluice_db("payment", "list", "--status", "paid").out == "none\n"
    text = sluice_db("payment", "list").out + sluice_db("payment", "show", str(second.id)).out
    assert "\\x1b[2Jorder\\u202e" in text
    assert not set(text) & set("\x1b\u202e")


def test_a_payout_is_shown_with_its_stage_and_listed(sluice_db: CommandLine, shop: UUID) -> None:
    made = payout(rich_shop(), order_id="payout-1")
    shown = sluice_db("payout", "show", str(made.id), "--json").json
    assert (shown["uuid"], shown["stage"], shown["order_id"]) == (str(made.id), made.status, "payout-1")

    def listed(*words: str) -> list[str]:
        return [each["uuid"] for each in sluice_db("payout", "list", *words, "--json").json["items"]]

    assert listed() == listed("--stage", made.status) == listed("--order", "payout-1") == [str(made.id)]
    assert listed("--merchant", str(made.merchant_id)) == [str(made.id)]
    assert listed("--merchant", str(shop)) == listed("--stage", "failed") == []


def test_a_webhook_is_shown_with_its_body_and_listed(sluice_db: CommandLine, shop: UUID) -> None:
    endpoint(shop)
    about = uuid4()
    with base.transaction():
        outbox.emit(shop, "invoice.paid", about, '{"type":"payment"}')
    (each,) = sluice_db("webhook", "list", "--json").json["items"]
    assert (each["event"], each["uuid"], each["status"]) == ("invoice.paid", str(about), "pending")
    shown = sluice_db("webhook", "show", each["delivery_id"], "--json").json
    assert shown["payload"] == '{"type":"payment"}'
    assert sluice_db("webhook", "list", "--of", str(about), "--status", "pending", "--merchant", str(shop)).out
    assert sluice_db("webhook", "list", "--status", "dead", "--json").json == {"items": []}


def test_rates_are_shown_with_their_age(sluice_db: CommandLine, shop: UUID) -> None:
    del shop
    insert = "INSERT INTO rates (currency, usd, source, quoted_at) VALUES (%s, 1.5, 'test', app_now() - %s::interval)"
    base.execute(insert, ("USDT", "1 second"))
    base.execute(insert, ("ETH", "1 hour"))
    items = {each["currency"]: each for each in sluice_db("rates", "--json").json["items"]}
    assert (items["ETH"]["state"], items["USDT"]["state"], items["USDT"]["source"]) == ("stale", "fresh", "test")
    assert "ETH  1.5" in sluice_db("rates").out


def test_queues_are_shown_with_their_processes(sluice: CommandLine, redis_url: str) -> None:
    sluice.env["REDIS_URL"] = redis_url
    items = {each["queue"]: each for each in sluice("queues", "--json").json["items"]}
    assert items["invoices"] == {"queue": "invoices", "waiting": 0, "oldest_s": 0, "processes": 0}
    assert "invoices: 0 wait, the oldest for 0 s, processes 0" in sluice("queues").out


def test_queues_without_redis_are_a_line(sluice: CommandLine) -> None:
    outcome = sluice("queues", "--json")
    assert (outcome.code, len(outcome.err.splitlines())) == (1, 1)
    assert outcome.json["error"]["code"] == "redis.unavailable"


@pytest.mark.parametrize("noun", ["payment", "payout", "webhook"])
def test_an_object_that_is_missing_names_the_list(sluice_db: CommandLine, noun: str) -> None:
    outcome = sluice_db(noun, "show", str(uuid4()), "--json")
    assert (outcome.code, outcome.json["error"]["code"]) == (1, f"{noun}.unknown")
    assert f"sluice {noun} list" in outcome.json["error"]["remedy"]


@pytest.mark.parametrize(
    "words",
    [("payment", "list", "--status", "x"), ("payout", "list", "--stage", "x"), ("webhook", "list", "--status", "x"),
     ("payment", "list", "--limit", "0"), ("payout", "list", "--limit", "501"), ("payment", "show", "x")],
)  # fmt: skip
def test_a_wrong_filter_is_a_usage_error(sluice: CommandLine, words: tuple[str, ...]) -> None:
    assert sluice(*words).code == 2


def issue(shop: UUID, label: str) -> str:
    return merchants.create_key(shop, "unified", label, SecretBox(DEVELOPMENT_SECRET_KEYS)).public_id


def test_a_merchant_is_shown_with_its_keys_and_without_a_secret(sluice_db: CommandLine, shop: UUID) -> None:
    key = issue(shop, "main")
    outcome = sluice_db("merchant", "show", str(shop), "--json")
    assert (outcome.json["merchant_id"], outcome.json["keys"][0]["public_id"]) == (str(shop), key)
    assert "sk_" not in outcome.out
    assert key in sluice_db("merchant", "show", str(shop)).out
    assert sluice_db("key", "show", key, "--json").json["label"] == "main"


@pytest.mark.parametrize("words", [("key", "show", "pk_x"), ("merchant", "show", str(uuid4()))])
def test_an_unknown_key_or_merchant_is_named(sluice_db: CommandLine, words: tuple[str, ...]) -> None:
    outcome = sluice_db(*words)
    assert outcome.code == 1
    assert "there is no" in outcome.err


def test_a_disabled_merchant_has_no_keys_and_no_payouts(sluice_db: CommandLine, shop: UUID) -> None:
    keys, other = [issue(shop, "main"), issue(shop, "cron")], issue(merchant(), "main")
    done = sluice_db("merchant", "disable", str(shop), "--reason", "fraud", "--yes", "--json").json
    assert done["revoked"] == keys
    base.connect(sluice_db.env["DATABASE_URL"])
    assert [merchants.find_key(key) for key in keys] == [None, None]
    assert merchants.find_key(other) is not None
    assert [(each.scope, each.name, each.reason) for each in freezes.listing()] == [("merchant", str(shop), "fraud")]
    assert sluice_db("key", "show", keys[0], "--json").json["revoked_at"]
    again = sluice_db("merchant", "disable", str(shop), "--reason", "fraud", "--yes")
    assert again.out.splitlines() == ["payouts: frozen before", "keys revoked: none"]


@pytest.mark.parametrize(
    ("words", "code"), [((str(uuid4()), "--reason", "x"), 1), (("--reason", " "), 1), (("--reason", "a\x1bb"), 1)]
)
def test_a_merchant_is_not_disabled_by_mistake(
    sluice_db: CommandLine, shop: UUID, words: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    key = issue(shop, "main")
    words = words if len(words) == 3 else (str(shop), *words)
    assert sluice_db("merchant", "disable", *words, "--yes").code == code
    # Without an answer to the question nothing happens either.
    assert sluice_db("merchant", "disable", str(shop), "--reason", "x").code == 1
    base.connect(sluice_db.env["DATABASE_URL"])
    assert (freezes.listing(), merchants.find_key(key) is not None) == ([], True)
