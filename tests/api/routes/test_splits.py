"""Split rules and their settings over HTTP with the real actors: accepted, refused and repeated requests."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from falcon import testing

from core.ids import NIL, uuid7
from core.merchants.split_schemas import RULES_MAX
from models.db.base import execute, rows, transaction
from models.ledger.rows import SplitEarnings
from models.ledger.shares import IN_FORCE, rules_of
from models.merchants import rows as merchants
from models.merchants import splits
from tests.actors.payouts.withdrawals import add_key
from tests.api.conftest import code_of
from tests.api.live import Live
from tests.models.db.collisions import at_once
from tests.models.ledger.sharing import add_rule

RULE, LIST, DELETE = "/v1/split/rule", "/v1/split/rule/list", "/v1/split/rule/delete"
GET, SET = "/v1/split/config/get", "/v1/split/config/set"
NOBODYS = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"


def add(live: Live, percent: Any = 12.5, *, to: Any = None, **more: Any) -> testing.Result:
    return live.post(RULE, {"recipient_merchant_id": str(to or live.stranger), "percent": percent} | more)


def listed(live: Live) -> Any:
    return live.post(LIST, {}).json["result"]["items"]


def test_a_rule_is_shown_as_it_was_made_until_it_is_deleted(live: Live) -> None:
    first = add(live, 100 / 3 // 0.01 / 100, title="Märkte").json["result"]
    second = add(live, 50).json["result"]

    assert first.keys() == {"rule_id", "recipient_merchant_id", "percent", "title", "status", "created_at"}
    assert (first["recipient_merchant_id"], first["percent"], first["title"]) == (str(live.stranger), 33.33, "Märkte")
    assert (second["percent"], second["title"]) == (50, "")
    assert listed(live) == [second, first], "newest first"

    gone = live.post(DELETE, {"rule_id": first["rule_id"].upper()})
    assert gone.json["result"] == {"rule_id": first["rule_id"], "deleted": True}
    assert listed(live) == [second]
    assert code_of(live.post(DELETE, {"rule_id": first["rule_id"]})) == "split.rule_not_found"


def test_a_rule_of_a_co_signing_merchant_waits_for_a_second_key(live: Live) -> None:
    merchants.set_cosign(live.shop, is_required=True)
    add(live, 60)
    execute("UPDATE split_rules SET is_pending = false, cosigned_by = 'cabinet:a'")

    first = add(live, 40).json["result"]
    assert first["status"] == "awaiting_cosign"
    assert in_force(live) == [600_000], "one key alone shares nothing"
    assert add(live, 40).json["result"] == first, "the same principal is no second one"
    other = second_voice(live, 300_000)
    assert (other.is_pending, other.id != UUID(first["rule_id"])) == (True, True), "another rule is no co-signature"

    signed = second_voice(live, 400_000)

    assert (str(signed.id), splits.show_rule(signed).status) == (first["rule_id"], "active")
    assert sorted(in_force(live)) == [400_000, 600_000]
    assert code_of(add(live, 30)) == "split.over_100", "a co-signature puts no more than all into force"


def test_a_rule_ends_with_the_key_that_made_it(live: Live) -> None:
    merchants.set_cosign(live.shop, is_required=True)
    pending = add(live, 30).json["result"]
    key = splits.listing(live.shop)[0].set_by
    execute(
        "INSERT INTO api_keys (id, public_id, merchant_id, kind, label, secret_box, revoked_at)"
        " VALUES (%s, %s, %s, 'payout', '', 'kid:none', app_now())",
        (uuid7(), key, live.shop),
    )

    made = second_voice(live, 300_000)

    assert made.is_pending, "a revoked key is no first voice"
    assert [str(rule.id) for rule in splits.listing(live.shop)] == [str(made.id)] != [pending["rule_id"]]
    execute("UPDATE split_rules SET is_pending = false")  # as if both had come into force
    assert in_force(live) == [300_000]


def test_a_rule_ends_with_the_key_that_co_signed_it(live: Live) -> None:
    merchants.set_cosign(live.shop, is_required=True)
    add(live, 30)
    second_voice(live, 300_000)
    add_key(live.shop, "pk_second", is_revoked=True)

    assert (listed(live), in_force(live)) == ([], [])
    assert add(live, 30).json["result"]["status"] == "awaiting_cosign", "two begin it again"


def second_voice(live: Live, percent_ppm: int) -> splits.SplitRuleRow:
    with transaction():
        return splits.add(live.shop, live.stranger, percent_ppm=percent_ppm, title="", principal="pk_second").rule


def in_force(live: Live) -> list[int]:
    """Return what the statement that credits a deposit would share, in millionths."""
    [(rules_json,)] = rows(f"SELECT {IN_FORCE} FROM (SELECT %s::uuid AS merchant_id) d", (live.shop,))
    return [
        rule.percent_ppm for rule in rules_of(json.loads(rules_json) if isinstance(rules_json, str) else rules_json)
    ]


def test_a_repeat_with_its_key_makes_one_rule(live: Live) -> None:
    body = {"recipient_merchant_id": str(live.stranger), "percent": 5}

    answers = [live.post(RULE, body, headers={"Idempotency-Key": "once"}).json["result"] for _ in range(2)]

    assert answers[0] == answers[1]
    assert len(listed(live)) == 1


@pytest.mark.parametrize("percent", [0, 0.001, 0.009, 100.01, 101, -1, 33.333, "5", "NaN", None, True, [5], 1e300])
def test_an_invalid_percentage_is_refused(live: Live, percent: Any) -> None:
    answer = add(live, percent)

    assert (answer.status_code, code_of(answer)) == (400, "split.bad_percent")
    assert listed(live) == []


def test_an_invalid_json_number_is_bad_json(live: Live) -> None:
    raw = f'{{"recipient_merchant_id": "{live.stranger}", "percent": NaN}}'.encode()

    assert code_of(live.client.signed(RULE, raw)) == "request.bad_json"


@pytest.mark.parametrize("percent", [0.01, 1, 1.0, 12.5, 99.99, 100, 1e2])
def test_a_valid_percentage_is_accepted(live: Live, percent: float) -> None:
    assert add(live, percent).json["result"]["percent"] == percent


def test_all_rules_together_are_no_more_than_all(live: Live) -> None:
    add(live, 60)
    add(live, 39.99)

    assert code_of(add(live, 0.02)) == "split.over_100"
    assert add(live, 0.01).status_code == 200
    assert code_of(add(live, 0.01)) == "split.over_100"


def test_shares_of_other_merchants_count_for_them_alone(live: Live) -> None:
    add_rule(live.stranger, live.shop, 100)

    assert add(live, 100).status_code == 200
    assert len(listed(live)) == 1


def test_rules_made_at_the_same_moment_are_no_more_than_all_either(live: Live) -> None:
    outcomes = at_once(4, lambda _: add_rule(live.shop, live.stranger, 40))

    assert sum(isinstance(outcome, Exception) for outcome in outcomes) == 2
    assert [rule["percent"] for rule in listed(live)] == [40, 40]


def test_the_number_of_rules_is_limited(live: Live) -> None:
    """Ten thousand of a hundredth percent would be a share each of every credit."""
    execute(
        "INSERT INTO split_rules (id, merchant_id, recipient_id, percent_ppm)"
        " SELECT gen_random_uuid(), %s, %s, 100 FROM generate_series(1, %s)",
        (live.shop, live.stranger, RULES_MAX - 1),
    )

    assert add(live, 0.01).status_code == 200
    refused = add(live, 0.01)

    assert (refused.status_code, code_of(refused)) == (409, "split.too_many_rules")
    assert len(listed(live)) == RULES_MAX


@pytest.mark.parametrize("to", ["x", NOBODYS, "{%s}", "urn:uuid:%s", "%s ", "%s\n", "", 7, None, str(NIL)])
def test_a_recipient_is_another_merchant_of_the_gateway(live: Live, to: Any) -> None:
    named = to % live.stranger if isinstance(to, str) and "%s" in to else to

    answer = live.post(RULE, {"recipient_merchant_id": named, "percent": 1})

    assert (answer.status_code, code_of(answer)) == (400, "split.unknown_recipient")


def test_a_merchant_cannot_share_with_itself_and_ids_may_be_in_capitals(live: Live) -> None:
    assert code_of(add(live, to=live.shop)) == "split.unknown_recipient"
    assert add(live, to=str(live.stranger).upper()).json["result"]["recipient_merchant_id"] == str(live.stranger)


NO_RULES = ("", "x", NOBODYS, f"{{{NOBODYS}}}", f"{NOBODYS}\n", None, 7, [])


@pytest.mark.parametrize("body", [{}] + [{"rule_id": given} for given in NO_RULES])
def test_an_unknown_rule_is_not_found(live: Live, body: Any) -> None:
    answer = live.post(DELETE, body)

    assert (answer.status_code, code_of(answer)) == (404, "split.rule_not_found")


@pytest.mark.parametrize("title", ["\x00", "\ud800", "x" * 256, 5])
def test_a_title_that_is_no_text_is_refused(live: Live, title: Any) -> None:
    assert code_of(add(live, title=title)) == "request.bad_field"


@pytest.mark.parametrize("title", ["\r\nBcc: x", "\u202etfel", "<script>alert(1)</script>", "x" * 255])
def test_any_other_text_is_a_title_and_comes_back_as_it_was(live: Live, title: str) -> None:
    assert add(live, title=title).json["result"]["title"] == title


# Settings -----------------------------------------------------------------------------------------------------


def test_only_given_settings_change(live: Live) -> None:
    assert live.post(GET, {}).json["result"] == {"enabled": True, "refund_hold_hours": 0, "earnings_by_asset": {}}

    changed = live.post(SET, {"refund_hold_hours": 2160}).json["result"]
    assert (changed["enabled"], changed["refund_hold_hours"]) == (True, 2160)
    changed = live.post(SET, {"enabled": False}).json["result"]
    assert (changed["enabled"], changed["refund_hold_hours"]) == (False, 2160)
    assert live.post(SET, {}).json["result"] == changed == live.post(GET, {}).json["result"]


@pytest.mark.parametrize("hours", [-1, 2161, 10**30, 1.5, "5", True, None, []])
def test_an_invalid_hold_is_refused(live: Live, hours: Any) -> None:
    answer = live.post(SET, {"enabled": False, "refund_hold_hours": hours})

    if hours is None:
        assert answer.status_code == 200, "as without it"
        return
    assert (answer.status_code, code_of(answer)) == (400, "split.bad_hold")
    assert live.post(GET, {}).json["result"]["enabled"] is True, "nothing of it took effect"


@pytest.mark.parametrize("enabled", ["yes", 1, []])
def test_enabled_is_true_or_false(live: Live, enabled: Any) -> None:
    assert code_of(live.post(SET, {"enabled": enabled})) == "request.bad_field"


def test_earnings_are_in_minor_units(live: Live) -> None:
    for recipient, currency in ((live.shop, "USDT"), (live.shop, "ETH"), (live.stranger, "DAI")):
        SplitEarnings(recipient_id=recipient, currency=currency, units=10**27).write()

    assert live.post(GET, {}).json["result"]["earnings_by_asset"] == {"ETH": str(10**27), "USDT": str(10**27)}


@pytest.mark.parametrize("path", [RULE, LIST, DELETE, GET, SET])
def test_a_payment_key_shares_nothing(live: Live, path: str) -> None:
    assert code_of(live.post(path, {}, public_id="pk_payment")) == "merchant.wrong_key_kind"
