"""A merchant says what is sent to him by itself: one rule a coin, checked as a payout's order is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from actors import context
from core.addresses import addresses
from core.errors import (
    AutowithdrawBadAddress,
    AutowithdrawBadThreshold,
    AutowithdrawUnknownCurrency,
    ComplianceAddressBlocked,
    DomainError,
)
from core.money import format_coin
from models.db.base import execute
from models.merchants import rows as merchants
from models.payouts import withdrawals
from models.payouts.withdrawals import WithdrawalRule
from tests.actors.asking import configure
from tests.actors.payouts.withdrawals import KEY, RULE, add_key, set_rule
from tests.models.addresses.test_pool import add_chunk, addresses_of
from tests.models.builders import CATALOGUE, merchant
from tests.models.payouts.builders import RECIPIENT, USDT, charge

# One step less than the smallest payout.
LEAST = format_coin(CATALOGUE.pairs["USDT", "ethereum"].min_payout_units - 1, 6)
ON: Final[dict[str, Any]] = {"enabled": True, "status": "active"}
OFF: Final[dict[str, Any]] = {"enabled": False, "status": "off"}
ELSEWHERE = "0x8617E340B3D01FA5F11F306F4090FD50E238070D"


@pytest.fixture(autouse=True)
def _gateway(database: str) -> None:
    configure(database)


@pytest.fixture
def shop(database: str) -> UUID:
    del database
    return merchant()


def rule(merchant_id: UUID) -> WithdrawalRule:
    [found] = withdrawals.listing(merchant_id)
    return found


def test_a_rule_is_set_told_and_kept(shop: UUID) -> None:
    assert set_rule(shop, {}) == []

    assert set_rule(shop) == [RULE | ON]

    assert set_rule(shop, {}) == [RULE | ON]
    found = rule(shop)
    assert (found.address, found.threshold_units, found.set_by) == (RECIPIENT.lower(), 50 * USDT, KEY)


@pytest.mark.parametrize(
    "change", [{"address": ELSEWHERE}, {"threshold": "7.5"}, {"enabled": False}, {"enabled": True, "threshold": "9"}]
)
def test_what_is_left_out_stays_as_it_was(shop: UUID, change: dict[str, Any]) -> None:
    set_rule(shop)

    assert set_rule(shop, {"currency": "USDT"} | change) == [
        RULE | (OFF if change.get("enabled") is False else ON) | change
    ]


def test_each_coin_has_a_rule_of_its_own_and_may_be_asked_for_alone(shop: UUID) -> None:
    set_rule(shop)
    ether = {"currency": "ETH", "network": "ethereum", "address": ELSEWHERE, "threshold": "1"} | OFF

    assert set_rule(shop, ether) == [ether, RULE | ON]
    assert set_rule(shop, {"currency": "ETH"}) == [ether]
    assert set_rule(shop, {"currency": "DAI"}) == []


def test_another_network_makes_a_new_rule_in_place_of_the_old_one(shop: UUID) -> None:
    set_rule(shop, RULE | {"enabled": False})
    moved = RULE | {"network": "bsc"}
    for missing, error in (("address", AutowithdrawBadAddress), ("threshold", AutowithdrawBadThreshold)):
        with pytest.raises(error):
            set_rule(shop, {name: text for name, text in moved.items() if name != missing})

    assert set_rule(shop, moved) == [moved | ON]


def coin_of_one_network() -> tuple[str, str]:
    return next(
        (code, CATALOGUE.networks_of(code)[0])
        for code in CATALOGUE.assets
        if len(CATALOGUE.networks_of(code)) == 1 and CATALOGUE.networks_of(code)[0] in {"ethereum", "bsc"}
    )


def test_the_network_of_a_coin_that_has_one_is_filled_in(shop: UUID) -> None:
    currency, network = coin_of_one_network()
    body = {"currency": currency, "address": RECIPIENT, "threshold": "1000"}

    assert set_rule(shop, body) == [body | {"network": network, **ON}]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"currency": "NONE"}, AutowithdrawUnknownCurrency),
        ({"currency": "usdt"}, AutowithdrawUnknownCurrency),
        ({"currency": "USD"}, AutowithdrawUnknownCurrency),
        ({"network": "polygon"}, AutowithdrawUnknownCurrency),  # not served
        ({"network": "bitcoin"}, AutowithdrawUnknownCurrency),
        ({"address": "nonsense"}, AutowithdrawBadAddress),
        ({"address": RECIPIENT.replace("E0F", "e0F")}, AutowithdrawBadAddress),
        ({"address": "0x" + "0" * 40}, AutowithdrawBadAddress),
        ({"address": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"}, AutowithdrawBadAddress),
        ({"address": "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"}, AutowithdrawBadAddress),
        ({"address": CATALOGUE.pairs["USDC", "ethereum"].contract}, AutowithdrawBadAddress),
        ({"threshold": "0"}, AutowithdrawBadThreshold),
        ({"threshold": LEAST}, AutowithdrawBadThreshold),  # below the smallest payout
        ({"threshold": "50.0000001"}, AutowithdrawBadThreshold),
    ],
)
def test_what_no_rule_can_be_is_refused(shop: UUID, change: dict[str, Any], error: type[DomainError]) -> None:
    with pytest.raises(error):
        set_rule(shop, RULE | change)

    assert withdrawals.listing(shop) == []


def test_a_threshold_that_would_not_arrive_is_refused(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "smallest_units", lambda _network, _address: 50_000_000)
    set_rule(shop)
    charge()
    context.context().market.forget()

    with pytest.raises(AutowithdrawBadThreshold, match="does not carry"):
        set_rule(shop)
    assert set_rule(shop, RULE | {"threshold": "51.2"}) == [RULE | {"threshold": "51.2"} | ON]


def test_a_change_without_a_coin_is_refused(shop: UUID) -> None:
    with pytest.raises(AutowithdrawUnknownCurrency):
        set_rule(shop, {"enabled": False})


def test_rules_of_no_coin_are_refused(shop: UUID) -> None:
    with pytest.raises(AutowithdrawUnknownCurrency):
        set_rule(shop, {"currency": "NONE"})


def test_nothing_is_sent_to_ourselves(shop: UUID) -> None:
    add_chunk(0)

    with pytest.raises(AutowithdrawBadAddress):
        set_rule(shop, RULE | {"address": addresses_of(0)[3]})


def test_a_blocked_address_is_refused_also_where_it_only_stays(shop: UUID, database: str, tmp_path: Path) -> None:
    set_rule(shop)
    deny_list = tmp_path / "deny"
    deny_list.write_text(RECIPIENT)
    configure(database, DENY_LIST=str(deny_list))

    for body in (RULE, {"currency": "USDT", "threshold": "60"}, {"currency": "USDT", "enabled": True}):
        with pytest.raises(ComplianceAddressBlocked):
            set_rule(shop, body)
    assert set_rule(shop, {"currency": "USDT", "enabled": False}) == [RULE | OFF]


def test_a_rule_can_be_switched_off_when_its_network_is_gone(shop: UUID, database: str) -> None:
    set_rule(shop)
    configure(database, ETHEREUM_RPC_URLS="")

    with pytest.raises(AutowithdrawUnknownCurrency):
        set_rule(shop, {"currency": "USDT", "threshold": "60"})
    assert set_rule(shop, {"currency": "USDT", "enabled": False}) == [RULE | OFF]


def test_whoever_names_the_address_answers_for_it(shop: UUID) -> None:
    set_rule(shop)

    set_rule(shop, {"currency": "USDT", "threshold": "60", "enabled": True}, by="pk_second")
    assert rule(shop).set_by == KEY
    set_rule(shop, {"currency": "USDT", "address": RECIPIENT}, by="pk_second")
    assert rule(shop).set_by == "pk_second"


def test_a_revoked_keys_address_is_to_be_named_again(shop: UUID) -> None:
    add_key(shop)
    set_rule(shop)
    execute("UPDATE api_keys SET revoked_at = app_now()")

    assert set_rule(shop, {}) == [RULE | OFF]
    with pytest.raises(AutowithdrawBadAddress):
        set_rule(shop, {"currency": "USDT", "enabled": True}, by="pk_second")

    assert set_rule(shop, RULE, by="pk_second") == [RULE | ON]


def test_a_merchant_has_its_own_rules_alone(shop: UUID) -> None:
    set_rule(shop)
    other = merchant()

    assert set_rule(other, {}) == []
    set_rule(other, RULE | {"threshold": "9"})
    set_rule(other, {"currency": "USDT", "enabled": False})
    assert set_rule(shop, {}) == [RULE | ON]


def test_a_rule_of_a_co_signing_merchant_waits_until_another_principal_sends_it_too(shop: UUID) -> None:
    set_rule(shop)
    merchants.set_cosign(shop, is_required=True)
    assert set_rule(shop) == [RULE | ON], "who set it is no second voice, and changes nothing"
    assert rule(shop).cosigned_by == ""
    set_rule(shop, by="pk_second")
    assert rule(shop).cosigned_by == "pk_second", "a rule of one principal becomes one of two"

    waits = {"enabled": True, "status": "awaiting_cosign"}
    changed = RULE | {"address": ELSEWHERE}
    for change in ({"threshold": "60"}, {"enabled": False, "threshold": "60"}):
        with pytest.raises(AutowithdrawBadAddress):
            set_rule(shop, {"currency": "USDT"} | change)
    assert set_rule(shop, changed) == [changed | waits]
    assert set_rule(shop, changed) == [changed | waits]
    assert set_rule(shop, {"currency": "USDT", "address": ELSEWHERE}, by="pk_second") == [changed | waits], "not all"
    other = changed | {"threshold": "60"}
    assert set_rule(shop, other, by="pk_second") == [other | waits], "another rule is no co-signature"

    assert set_rule(shop, other) == [other | ON]
    assert (rule(shop).set_by, rule(shop).cosigned_by) == ("pk_second", KEY)
    assert set_rule(shop, {"currency": "USDT", "enabled": False}) == [other | OFF]
    assert set_rule(shop, other | {"enabled": True}) == [other | waits], "what one ended, two begin"
    add_key(shop, is_revoked=True)
    assert set_rule(shop, other, by="pk_second") == [other | waits], "a revoked key is no first voice"


def test_a_rule_ends_with_the_key_that_co_signed_it(shop: UUID) -> None:
    merchants.set_cosign(shop, is_required=True)
    set_rule(shop)
    assert set_rule(shop, by="pk_lost") == [RULE | ON]
    add_key(shop, "pk_lost", is_revoked=True)

    assert set_rule(shop, {}) == [RULE | OFF]
    with pytest.raises(AutowithdrawBadAddress):
        set_rule(shop, {"currency": "USDT", "enabled": True})
    assert withdrawals.named_by("pk_lost") == ["USDT"]

    assert set_rule(shop) == [RULE | {"enabled": True, "status": "awaiting_cosign"}]
    assert set_rule(shop, by="pk_third") == [RULE | ON]
    assert withdrawals.named_by("pk_lost") == []


def test_a_second_voice_need_not_name_a_coin_s_only_network(shop: UUID) -> None:
    merchants.set_cosign(shop, is_required=True)
    currency, network = coin_of_one_network()
    body = {"currency": currency, "address": RECIPIENT, "threshold": "1000"}
    shown = body | {"network": network}
    assert set_rule(shop, body) == [shown | {"enabled": True, "status": "awaiting_cosign"}]

    assert set_rule(shop, body, by="pk_second") == [shown | ON]


def test_a_second_voice_names_the_network_as_well(shop: UUID) -> None:
    merchants.set_cosign(shop, is_required=True)
    set_rule(shop)
    waits = RULE | {"enabled": True, "status": "awaiting_cosign"}

    for left_out in ("network", "address", "threshold"):
        body = {name: text for name, text in RULE.items() if name != left_out}
        assert set_rule(shop, body, by="pk_second") == [waits], "it has not named all"

    assert set_rule(shop, by="pk_second") == [RULE | ON]
