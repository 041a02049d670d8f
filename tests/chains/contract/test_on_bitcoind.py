"""A few of the duties on a real bitcoind: what our own node stands in for elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from chains.net import providers as chain_providers
from cli.embedded.bitcoin.node import BitcoinNode
from tests.chains.contract.bitcoin import BitcoinRig
from tests.chains.contract.rig import Rig
from tests.chains.contract.test_money_in import test_a_payment_is_credited_once_however_often_its_block_is_read as once
from tests.chains.contract.test_money_out import test_what_is_stuck_is_offered_more_and_paid_once as dearer
from tests.chains.contract.test_spends_in_trouble import (
    test_a_thief_with_our_key_stops_the_signing_and_makes_nobody_be_paid_twice as robbed,
)


@pytest.fixture
def real(database: str, bitcoind: Callable[[], BitcoinNode], monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(chain_providers, "HEADS_EVERY_S", 0.0)
    with ExitStack() as stack:
        rig = BitcoinRig(database, bitcoind, stack)
        yield stack.enter_context(rig.served_by(1))


@pytest.mark.parametrize("duty", [once, dearer, robbed])
def test_a_duty_is_done_on_a_real_node(duty: Callable[[Rig], None], real: Rig) -> None:
    real.enrich()
    real.advance(real.network.maturity)
    duty(real)
