"""A merchant sets one withdrawal rule a coin, checked like the order of a payout."""

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
    [listed_rule] = withdrawals.listing(merchant_id)
    return listed_rule


def test_a_rule_is_set_returned_and_stored(shop: UUID) -> None:
    assert set_rule(shop, {}) == []

    assert set_rule(shop) == [RULE | ON]

    assert set_rule(shop, {}) == [RULE | ON]
    stored = rule(shop)
    assert (stored.address, stored.threshold_units, stored.set_by) == (RECIPIENT.lower(), 50 * USDT, KEY)


@pytest.mark.parametrize(
    "change", [{"address": ELSEWHERE}, {"threshold": "7.5"}, {"enabled": False}, {"enabled": True, "threshold": "9"}]
)
def test_omitted_fields_keep_their_values(shop: UUID, change: dict[str, Any]) -> None:
    set_rule(shop)

    assert set_rule(shop, {"currency": "USDT"} | change) == [
        RULE | (OFF if change.get("enabled") is False else ON) | change
    ]


def test_each_coin_has_its_own_rule_which_can_be_read_alone(shop: UUID) -> None:
    set_rule(shop)
    ether = {"currency": "ETH", "network": "ethereum", "address": ELSEWHERE, "threshold": "1"} | OFF

    assert set_rule(shop, ether) == [ether, RULE | ON]
    assert set_rule(shop, {"currency": "ETH"}) == [ether]
    assert set_rule(shop, {"currency": "DAI"}) == []


def test_another_network_replaces_the_coins_rule(shop: UUID) -> None:
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


def test_the_only_network_of_a_coin_is_filled_in(shop: UUID) -> None:
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
def test_an_impossible_rule_is_refused(shop: UUID, change: dict[str, Any], error: type[DomainError]) -> None:
    with pytest.raises(error):
        set_rule(shop, RULE | change)

    assert withdrawals.listing(shop) == []


def test_a_threshold_below_the_fee_is_refused(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_rules_of_an_unknown_coin_are_refused(shop: UUID) -> None:
    with pytest.raises(AutowithdrawUnknownCurrency):
        set_rule(shop, {"currency": "NONE"})


def test_our_own_address_is_refused(shop: UUID) -> None:
    add_chunk(0)

    with pytest.raises(AutowithdrawBadAddress):
        set_rule(shop, RULE | {"address": addresses_of(0)[3]})


def test_a_blocked_address_is_refused_even_if_unchanged(shop: UUID, database: str, tmp_path: Path) -> None:
    set_rule(shop)
    deny_list = tmp_path / "deny"
    deny_list.write_text(RECIPIENT)
    configure(database, DENY_LIST=str(deny_list))

    for body in (RULE, {"currency": "USDT", "threshold": "60"}, {"currency": "USDT", "enabled": True}):
        with pytest.raises(ComplianceAddressBlocked):
            set_rule(shop, body)
    assert set_rule(shop, {"currency": "USDT", "enabled": False}) == [RULE | OFF]


def test_a_rule_can_be_disabled_after_its_network_is_gone(shop: UUID, database: str) -> None:
    set_rule(shop)
    configure(database, ETHEREUM_RPC_URLS="")

    with pytest.raises(AutowithdrawUnknownCurrency):
        set_rule(shop, {"currency": "USDT", "threshold": "60"})
    assert set_rule(shop, {"currency": "USDT", "enabled": False}) == [RULE | OFF]


def test_the_key_that_names_the_address_is_responsible_for_it(shop: UUID) -> None:
    set_rule(shop)

    set_rule(shop, {"currency": "USDT", "threshold": "60", "enabled": True}, by="pk_second")
    assert rule(shop).set_by == KEY
    set_rule(shop, {"currency": "USDT", "address": RECIPIENT}, by="pk_second")
    assert rule(shop).set_by == "pk_second"


def test_a_revoked_keys_address_must_be_named_again(shop: UUID) -> None:
    add_key(shop)
    set_rule(shop)
    execute("UPDATE api_keys SET revoked_at = app_now()")

    assert set_rule(shop, {}) == [RULE | OFF]
    with pytest.raises(AutowithdrawBadAddress):
        set_rule(shop, {"currency": "USDT", "enabled": True}, by="pk_second")

    assert set_rule(shop, RULE, by="pk_second") == [RULE | ON]


def test_rules_of_merchants_are_independent(shop: UUID) -> None:
    set_rule(shop)
    other = merchant()

    assert set_rule(other, {}) == []
    set_rule(other, RULE | {"threshold": "9"})
    set_rule(other, {"currency": "USDT", "enabled": False})
    assert set_rule(shop, {}) == [RULE | ON]


def test_a_rule_of_a_co_signing_merchant_waits_for_another_principal(shop: UUID) -> None:
    set_rule(shop)
    merchants.set_cosign(shop, is_required=True)
    assert set_rule(shop) == [RULE | ON], "its creator does not co-sign it"
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
    assert set_rule(shop, {"currency": "USDT", "address": ELSEWHERE}, by="pk_second") == [changed | waits], (
        "not the whole rule"
    )
    other = changed | {"threshold": "60"}
    assert set_rule(shop, other, by="pk_second") == [other | waits], "another rule does not co-sign it"

    assert set_rule(shop, other) == [other | ON]
    assert (rule(shop).set_by, rule(shop).cosigned_by) == ("pk_second", KEY)
    assert set_rule(shop, {"currency": "USDT", "enabled": False}) == [other | OFF]
    assert set_rule(shop, other | {"enabled": True}) == [other | waits], "one principal disables it, two enable it"
    add_key(shop, is_revoked=True)
    assert set_rule(shop, other, by="pk_second") == [other | waits], "a revoked key does not count"


def test_a_rule_ends_with_the_revocation_of_its_co_signing_key(shop: UUID) -> None:
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


def test_a_co_signature_may_omit_a_coins_only_network(shop: UUID) -> None:
    merchants.set_cosign(shop, is_required=True)
    currency, network = coin_of_one_network()
    body = {"currency": currency, "address": RECIPIENT, "threshold": "1000"}
    shown = body | {"network": network}
    assert set_rule(shop, body) == [shown | {"enabled": True, "status": "awaiting_cosign"}]

    assert set_rule(shop, body, by="pk_second") == [shown | ON]


def test_a_co_signature_names_the_network_of_a_coin_with_several(shop: UUID) -> None:
    merchants.set_cosign(shop, is_required=True)
    set_rule(shop)
    waits = RULE | {"enabled": True, "status": "awaiting_cosign"}

    for left_out in ("network", "address", "threshold"):
        body = {name: text for name, text in RULE.items() if name != left_out}
        assert set_rule(shop, body, by="pk_second") == [waits], "the network is missing"

    assert set_rule(shop, by="pk_second") == [RULE | ON]
