"""Credits the held deposits of unblocked wallets, even if one wallet fails."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from actors.wallets import ticks
from models.deposits import crediting
from models.deposits.rows import Deposit
from tests.actors.asking import configure
from tests.models.builders import USDT, Chain, merchant
from tests.models.wallets.builders import received, set_blocked, statuses, wallet


def test_a_wallet_whose_step_fails_delays_no_other_and_is_retried_later(
    database: str, rung: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(database)
    chain, broken = Chain(), merchant()
    mine = [set_blocked(wallet(each), is_blocked=True) for each in (broken, merchant())]
    for each in mine:
        received(chain, each, USDT)
        set_blocked(each, is_blocked=False)
    do: Callable[..., object] = crediting.credit

    def fault(catalogue: object, deposit: Deposit, merchant_id: UUID, **terms: int) -> object:
        if merchant_id == broken:
            raise LookupError("a fault")
        return do(catalogue, deposit, merchant_id, **terms)

    monkeypatch.setattr(crediting, "credit", fault)
    rung.clear()

    ticks.credit_unblocked_wallets()
    ticks.credit_unblocked_wallets()

    assert [statuses(each) for each in mine] == [["confirmed"], ["credited"]]
    assert rung.count("credit_unblocked_wallets") <= 1
