"""No payout is signed once a key that ordered or approved it is revoked."""

from __future__ import annotations

from uuid import UUID

import pytest

from core.ids import uuid7
from core.logs import checkpoints
from models.db.base import execute
from models.outcomes import disowned
from models.payouts.rows import PayoutApproval, PayoutRow
from tests.actors.signer.world import SpendWorld
from tests.models.builders import USDT

KEY = "pk_" + "a" * 24
APPROVER = "pk_" + "b" * 24


def revoke(key: str | None = None) -> None:
    execute("UPDATE api_keys SET revoked_at = app_now() WHERE public_id = COALESCE(%s, public_id)", (key,))


def made_by_rule(world: SpendWorld, **more: object) -> PayoutRow:
    """Return an approved payout in the name of a key in force."""
    shop, payout_id = world.shop(), uuid7()
    _add_key(shop)
    rule = {"kind": "autowithdraw", "order_id": f"autowithdraw:{payout_id}", "source": "manual", "is_fee_on_top": False}
    return world.order(shop, id=payout_id, created_by=KEY, **rule | {"amount_units": 11 * USDT} | more)


def _add_key(shop: UUID, key: str = KEY) -> None:
    execute(
        "INSERT INTO api_keys (id, public_id, merchant_id, kind, label, secret_box) VALUES (%s, %s, %s, 'payout', '',"
        " 'kid:none')",
        (uuid7(), key, shop),
    )


def approved(world: SpendWorld) -> PayoutRow:
    """Return a payout that another key has approved; both keys are in force."""
    order = made_by_rule(world, kind="payout", order_id="order-1", source="api")
    _add_key(order.merchant_id, APPROVER)
    assert PayoutApproval(payout_id=order.id, principal=APPROVER).write()
    return order


def test_a_withdrawal_by_a_revoked_keys_rule_is_returned(world: SpendWorld) -> None:
    order = made_by_rule(world)
    revoke()

    world.step()

    assert (world.payout(order).status, world.payout(order).error) == ("cancelled", disowned.REASON)
    assert (world.held_units(order), world.available(order), world.count("spends")) == (0, 1_000 * USDT, 0)


def test_a_key_revoked_between_quote_and_signature_is_noticed(world: SpendWorld) -> None:
    order = made_by_rule(world)
    checkpoints.listen(lambda label: revoke() if label == "spending.quoted" else None)

    world.step()

    assert (world.payout(order).status, world.count("spends")) == ("approved", 0)


@pytest.mark.parametrize("kind", ["payout", "cheque"])
def test_an_order_of_a_revoked_key_is_returned(world: SpendWorld, kind: str) -> None:
    order = made_by_rule(world, kind=kind, order_id="order-1", source="api")
    revoke()

    world.step()

    assert (world.payout(order).status, world.payout(order).error) == ("cancelled", disowned.REASON)


def test_a_withdrawal_by_a_rule_of_a_key_in_force_is_sent(world: SpendWorld) -> None:
    order = made_by_rule(world)

    world.step()

    assert world.payout(order).status == "sent"


def test_a_payout_approved_by_a_revoked_key_is_returned(world: SpendWorld) -> None:
    order = approved(world)
    revoke(APPROVER)

    world.step()

    assert (world.payout(order).status, world.payout(order).error) == ("cancelled", disowned.UNAPPROVED)
    assert (world.held_units(order), world.available(order), world.count("spends")) == (0, 1_000 * USDT, 0)


def test_an_approver_revoked_between_quote_and_signature_is_noticed(world: SpendWorld) -> None:
    order = approved(world)
    checkpoints.listen(lambda label: revoke(APPROVER) if label == "spending.quoted" else None)

    world.step()

    assert (world.payout(order).status, world.count("spends")) == ("approved", 0)


def test_a_payout_approved_by_keys_in_force_is_sent(world: SpendWorld) -> None:
    order = approved(world)
    _add_key(order.merchant_id, "pk_" + "c" * 24)
    revoke("pk_" + "c" * 24)

    world.step()

    assert world.payout(order).status == "sent"
