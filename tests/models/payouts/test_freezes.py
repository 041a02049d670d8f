"""A freeze stops what it names, and nothing else, from its row's commit until it is lifted."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from core.errors import PayoutConvertFrozen, PayoutFrozen
from core.payouts import ways_out
from models.db.base import rows, transaction
from models.ledger.ledger import AVAILABLE, CUSTODY, DEBT, GATEWAY, Account, Transfer, post
from models.payouts import freezes
from models.payouts.freezes import RECONCILER, Scope


def frozen(merchant_id: UUID) -> dict[str, bool]:
    """Return which are stopped: the merchant on two networks, and another merchant."""
    return {
        "ethereum": freezes.is_frozen(merchant_id, "ethereum", "USDT"),
        "bsc": freezes.is_frozen(merchant_id, "bsc", "USDT"),
        "other": freezes.is_frozen(uuid4(), "ethereum", "USDT"),
        "balance": _refuses_balance(merchant_id),
    }


def _refuses_balance(merchant_id: UUID) -> bool:
    try:
        freezes.check_merchant(merchant_id, "USDT")
    except PayoutFrozen:
        return True
    return False


def test_each_scope_stops_its_own_payouts(shop: UUID) -> None:
    nothing = dict.fromkeys(("ethereum", "bsc", "other", "balance"), False)
    stopped: dict[tuple[Scope, str], dict[str, bool]] = {
        ("all", ""): dict.fromkeys(nothing, True),
        ("network", "ethereum"): nothing | {"ethereum": True, "other": True},
        ("merchant", str(shop)): nothing | {"ethereum": True, "bsc": True, "balance": True},
        ("conversion", ""): nothing,
        ("coin", "USDT:ethereum"): nothing | {"ethereum": True, "other": True},
        ("coin", "USDC:ethereum"): nothing,
    }
    for (scope, name), expected in stopped.items():
        assert freezes.freeze(scope, name, reason="look into it", frozen_by="operator")
        assert frozen(shop) == expected, scope
        assert freezes.unfreeze(scope, name) == 1
        assert frozen(shop) == nothing
    assert freezes.unfreeze("all") == 0


def test_a_refused_order_can_be_retried_after_the_freeze(shop: UUID) -> None:
    freezes.freeze("merchant", str(shop), reason="r", frozen_by="operator")

    with pytest.raises(PayoutFrozen) as refused:
        freezes.check(shop, "ethereum", "USDT")

    assert refused.value.retryable


def test_a_network_is_frozen_alone_or_with_all_but_not_by_a_merchants_freeze(shop: UUID) -> None:
    freezes.freeze("merchant", str(shop), reason="r", frozen_by="operator")
    freezes.freeze("network", "bsc", reason="r", frozen_by=RECONCILER)
    assert [freezes.is_network_frozen(network) for network in ("bsc", "ethereum")] == [True, False]

    freezes.freeze("all", reason="r", frozen_by="operator")

    assert freezes.is_network_frozen("ethereum")


def test_conversions_are_frozen_separately(shop: UUID) -> None:
    freezes.check_conversion()
    freezes.freeze("all", reason="r", frozen_by="operator")
    freezes.check_conversion()

    freezes.freeze("conversion", reason="r", frozen_by="operator")

    with pytest.raises(PayoutConvertFrozen):
        freezes.check_conversion()
    freezes.unfreeze("all")
    freezes.check(shop, "ethereum", "USDT")


def test_a_debt_in_any_coin_stops_payouts_in_every_coin_until_it_is_repaid(shop: UUID) -> None:
    custody, debt = Account(GATEWAY, CUSTODY, "USDT", "ethereum"), Account(shop, DEBT, "USDT")
    with transaction():
        post("reversal", [Transfer(debt, custody, 5)])
    assert frozen(shop) == {"ethereum": True, "bsc": True, "other": False, "balance": True}
    assert freezes.is_frozen(shop, "ethereum", "USDC"), "a debt in one coin stops every coin"
    assert not freezes.is_frozen(shop, "ethereum", "USDC", way=ways_out.TO_PAYER), "but not a refund to a buyer"
    assert freezes.is_frozen(shop, "ethereum", "USDC", way=ways_out.ELSEWHERE), "an accomplice's refund is stopped"
    assert freezes.is_frozen(shop, "ethereum", "USDT", way=ways_out.TO_PAYER)

    with transaction():
        post("repayment", [Transfer(custody, debt, 5), Transfer(custody, Account(shop, AVAILABLE, "USDT"), 2)])

    assert not freezes.is_frozen(shop, "ethereum", "USDT")
    assert not freezes.is_frozen(shop, "ethereum", "USDC")


def test_each_actor_freezes_with_its_own_reason_and_an_operator_lifts_all(shop: UUID) -> None:
    assert freezes.freeze("network", "bsc", reason="12 USDT are missing", frozen_by=RECONCILER)
    assert not freezes.freeze("network", "bsc", reason="13 USDT are missing", frozen_by=RECONCILER)
    assert freezes.freeze("network", "bsc", reason="nodes are upgraded", frozen_by="operator")
    assert [(f.frozen_by, f.reason) for f in freezes.listing()] == [
        (RECONCILER, "13 USDT are missing"),
        ("operator", "nodes are upgraded"),
    ]
    assert freezes.counts() == {"all": 0, "network": 2, "merchant": 0, "conversion": 0, "coin": 0}

    assert freezes.unfreeze("network", "bsc", frozen_by=RECONCILER) == 1
    assert freezes.is_frozen(shop, "bsc", "USDT")
    freezes.freeze("network", "bsc", reason="again", frozen_by=RECONCILER)
    assert freezes.unfreeze("network", "bsc") == 2

    assert freezes.listing() == []


def test_a_repeated_freeze_keeps_its_first_time(shop: UUID) -> None:
    del shop
    freezes.freeze("all", reason="first", frozen_by="operator")
    (first,) = freezes.listing()
    freezes.freeze("all", reason="second", frozen_by="operator")

    assert (first.scope, first.name, first.frozen_by) == ("all", "", "operator")
    assert freezes.listing() == [first.but(reason="second")]


@pytest.mark.parametrize(("scope", "name"), [("all", "x"), ("conversion", "x"), ("network", ""), ("merchant", "")])
def test_a_name_outside_its_scope_is_refused(database: str, scope: Scope, name: str) -> None:
    del database
    with pytest.raises(ValueError, match="freeze of"):
        freezes.freeze(scope, name, reason="r", frozen_by="operator")
    assert rows("SELECT 1 FROM payout_freezes") == []
