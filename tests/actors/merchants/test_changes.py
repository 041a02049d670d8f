"""An owner gets one line for each real change, with its coin or recipient as topic, even if several race."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import pytest

from actors.merchants.allowlist import set_allowlist
from actors.merchants.splits import add_split_rule, delete_split_rule, set_splits
from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from core.texts.mail import Change
from models.db.base import execute, one, transaction
from models.merchants import notices
from models.merchants import rows as merchants
from models.merchants.emails import EmailRow
from tests.actors.asking import ask, configure
from tests.actors.payouts.withdrawals import RULE, set_rule
from tests.models.builders import merchant
from tests.models.db.collisions import at_once
from tests.models.queue.builders import info

HERE: Final = "203.0.113.7"
ETHER: Final = RULE | {"currency": "ETH", "threshold": "1"}


@pytest.fixture
def shop(database: str) -> UUID:
    configure(database, SMTP_URL="smtp://127.0.0.1:1")
    shop = merchant()
    with transaction():
        notices.set_address(shop, "owner@mail.example")
    return shop


def noticed() -> list[Change]:
    box = SecretBox(DEVELOPMENT_SECRET_KEYS)
    return [change for email in EmailRow.read("true") for change in notices._decode.decode(email.open(box)).changes]


def topics() -> list[str]:
    return [change.topic for change in noticed()]


def test_several_keys_that_set_the_same_value_at_once_make_one_change(shop: UUID) -> None:
    set_rule(shop)
    changes: list[Any] = [
        lambda _: set_rule(shop, {"currency": "USDT", "enabled": False}),
        lambda _: set_rule(shop, ETHER),
        lambda _: ask(set_splits, info(shop), {"enabled": True, "refund_hold_hours": 7}),
        lambda _: ask(set_allowlist, info(shop), {"ips": [HERE], "source": HERE}),
    ]
    for number, change in enumerate(changes, start=2):
        assert not [error for error in at_once(6, change) if isinstance(error, Exception)]
        assert len(noticed()) == number


def test_each_coin_and_recipient_is_a_topic(shop: UUID) -> None:
    set_rule(shop)
    set_rule(shop, ETHER)
    recipients = [merchant(), merchant()]
    for recipient in recipients:
        body = {"recipient_merchant_id": str(recipient), "percent": 1}
        rule = ask(add_split_rule, info(shop), body)
    ask(delete_split_rule, info(shop), {"rule_id": rule["rule_id"]})

    first, second = (f"splits {recipient}" for recipient in recipients)
    assert topics() == ["withdrawals USDT", "withdrawals ETH", first, second, second]


def test_the_same_address_named_by_another_key_is_a_change(shop: UUID) -> None:
    set_rule(shop)
    set_rule(shop)
    assert [change.by for change in noticed()] == ["pk_creator"]

    set_rule(shop, by="pk_thief")

    assert [change.by for change in noticed()] == ["pk_creator", "pk_thief"]
    assert noticed()[0].text == noticed()[1].text


def test_a_waiting_rule_repeated_by_its_principal_is_not_a_change(shop: UUID) -> None:
    merchants.set_cosign(shop, is_required=True)
    body = {"recipient_merchant_id": str(merchant()), "percent": 1}
    for principal in ("pk_first", "pk_first", "pk_second"):
        ask(add_split_rule, info(shop, principal=principal), body)

    assert [change.text.partition(":")[0] for change in noticed()] == [
        "Split rule, awaiting_cosign",
        "Split rule, active",
    ]


def test_the_reason_that_stopped_a_rule_is_cleared_when_it_is_set_again(shop: UUID) -> None:
    set_rule(shop)
    execute("UPDATE withdrawal_rules SET failures = 3, wait_reason = 'x', due_at = app_now() + interval '1 day'")

    set_rule(shop)

    row = one("SELECT failures, wait_reason, due_at <= app_now() FROM withdrawal_rules")
    assert row == (0, "", True)
    assert len(noticed()) == 1
