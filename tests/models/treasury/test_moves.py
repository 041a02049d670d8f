"""An operator's move from a cold address to another network is booked once and cannot be sold."""

from __future__ import annotations

from typing import Any, Final

import pytest

from models.db import scales
from models.db.base import execute, rows
from models.ledger import ledger
from models.ledger.ledger import CUSTODY, EQUITY, GATEWAY, Account
from models.treasury import addresses, cold_books, moves, reconciliation, topups
from models.treasury.moves import MoveError
from models.treasury.rows import Topup
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound
from tests.models.db.collisions import at_once
from tests.models.payouts.held import funded
from tests.models.spends import by_hand
from tests.models.treasury.builders import COLD, pin_hot, spend, topup

TXID: Final = "0x" + "ab" * 32


@pytest.fixture(autouse=True)
def _cooled(chain: Chain) -> None:
    """Move ten of a hundred USDT to the cold address."""
    scales.keep(CATALOGUE.ledger_scales())
    pin_hot()
    assert addresses.set_cold("ethereum", COLD)
    funded(100 * USDT)
    here = (chain.height, chain._hash())
    spend_id = spend(purpose="cold", recipient=COLD, currency="USDT", token_units=10_000_000, mined=here, decimals=6)
    by_hand.change("state = 'confirmed'", "id = %s", (spend_id,))


def move(units: int = 4 * USDT, *, from_network: str = "ethereum", to_network: str = "bsc", txid: str = TXID) -> bool:
    return moves.move(
        currency="USDT",
        units=units,
        from_network=from_network,
        to_network=to_network,
        txid=txid,
        by="operator",
    )


def custody_and_equity(network: str = "ethereum") -> tuple[int, int]:
    """Return a network's custody and the gateway's own balance."""
    custody = ledger.credited([Account(GATEWAY, CUSTODY, "USDT", network)])
    return -custody, ledger.credited([Account(GATEWAY, EQUITY, "USDT")])


def test_a_move_leaves_custody_and_is_not_owned_twice() -> None:
    custody, equity = custody_and_equity()
    assert cold_books.units("ethereum", "USDT", with_pending=True) == 10 * USDT

    assert move()

    assert custody_and_equity() == (custody - 4 * USDT, equity - 4 * USDT)
    assert cold_books.units("ethereum", "USDT", with_pending=True) == 6 * USDT
    books = reconciliation.read_books("ethereum")
    assert books is not None
    assert books.returned_units["USDT"] == 4 * USDT
    assert_sound()


def test_a_move_is_booked_once_however_often_and_concurrently() -> None:
    assert sorted(map(repr, at_once(3, lambda _: move()))) == ["False", "False", "True"]
    assert rows("SELECT units FROM treasury_moves") == [(4 * USDT,)]


@pytest.mark.parametrize("other", [{"units": 5 * USDT}, {"to_network": "polygon"}])
def test_a_booked_transaction_with_other_figures_is_refused(other: dict[str, Any]) -> None:
    assert move()
    with pytest.raises(MoveError, match="booked already"):
        move(**other)


def test_a_move_above_the_cold_addresss_books_is_refused() -> None:
    assert move(10 * USDT)
    with pytest.raises(MoveError, match="holds less"):
        move(1, txid="0xother")
    with pytest.raises(MoveError, match="holds less"):
        move(1, from_network="bsc", to_network="ethereum", txid="0xother")


def came(chain: Chain, units: int) -> Topup:
    """Book a top-up of unknown origin."""
    made = topup(chain, units, currency="USDT")
    chain.mature()
    topups.book_matured(chain.network, limit=9)
    return made


def test_a_top_up_from_the_cold_address_is_owned_up_to_its_missing_books(chain: Chain) -> None:
    custody, equity = custody_and_equity()
    back = came(chain, 12 * USDT)
    assert custody_and_equity() == (custody + 12 * USDT, equity + 12 * USDT)

    stored = topups.find("ethereum", back.txid)
    assert [each.id for each in stored] == [back.id]
    assert sorted(map(repr, at_once(3, lambda _: topups.take_as_returned(stored[0])))) == [
        repr(10 * USDT), "None", "None",
    ]  # fmt: skip

    assert custody_and_equity() == (custody + 2 * USDT, equity + 2 * USDT)
    assert (topups.find("ethereum", back.txid), topups.take_as_returned(stored[0])) == ([], None)
    assert cold_books.units("ethereum", "USDT", with_pending=True) == 0
    assert_sound()

    execute("UPDATE chain_cursors SET height = %s", (back.block_height - 1,))
    topups.reverse_orphans("ethereum")
    assert custody_and_equity() == (custody, equity)
    assert cold_books.units("ethereum", "USDT", with_pending=True) == 10 * USDT


def test_a_top_up_is_not_taken_as_returned_while_the_cold_balance_is_unknown(chain: Chain) -> None:
    came_txid = came(chain, 4 * USDT).txid
    [back] = topups.find("ethereum", came_txid)
    waiting = spend(purpose="cold", recipient=COLD, currency="USDT", token_units=1)
    assert topups.take_as_returned(back) is None
    by_hand.change("state = 'dead', settled_at = app_now()", "id = %s", (waiting,))
    assert topups.take_as_returned(back) == 4 * USDT
