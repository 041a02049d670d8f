"""Many payouts at once where money lies at addresses, while workers die, broadcasts lose answers and messages double.

All three networks burn together, in a coin of their own and in a token. Nothing counts a sender's transactions on TRON
and Solana, and on TON one request pays many at once: that none leaves twice is for the signer to see to.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.accounts.solana import SOLANA
from tests.flows.accounts.ton import TON
from tests.flows.accounts.tron import TRON
from tests.flows.under_fire import Accounts, burning, run_payouts


@pytest.mark.timeout(400)
def test_twenty_payouts_of_each_network_under_fire_arrive_once_each(tmp_path: Path) -> None:
    with burning(tmp_path, "tron,solana,ton") as stack:
        run_payouts(stack, (TRON, SOLANA, TON), 20)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("accounts", "count"),
    [(TRON, 100), (SOLANA, 200), (TON, 200)],
    ids=lambda value: getattr(value, "network", ""),
)
def test_hundreds_of_payouts_under_fire_arrive_once_each(tmp_path: Path, accounts: Accounts, count: int) -> None:
    with burning(tmp_path, accounts.network) as stack:
        run_payouts(stack, (accounts,), count)
