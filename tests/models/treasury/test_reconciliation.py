"""The books of one block follow the chain's order, not the times of notes."""

from __future__ import annotations

import dataclasses

import pytest

from models.db.base import execute
from models.treasury import addresses, reconciliation
from models.treasury.reconciliation import Finding, Flow
from tests.models.builders import Chain
from tests.models.treasury.builders import COLD, HOT, pin_hot, spend, topup, topup_rows

DEPOSIT = "0x" + "dd" * 20
STRANGER = "0x" + "66" * 20


def books() -> reconciliation.Books:
    read = reconciliation.read_books("ethereum")
    assert read is not None
    return read


def test_without_a_hot_wallet_or_scan_there_are_no_books(database: str) -> None:
    del database
    assert reconciliation.read_books("ethereum") is None
    pin_hot()
    assert reconciliation.read_books("ethereum") is None
    Chain()
    assert books().hot == HOT


def test_movements_up_to_the_block_count(chain: Chain) -> None:
    pin_hot()
    topup(chain, 100)
    here = (chain.height, chain._hash())
    spend(
        purpose="sweep", sender=DEPOSIT, recipient=HOT, currency="USDT", token_units=50, mined=here, chain_fee_units=9
    )
    spend(recipient=DEPOSIT, token_units=30, mined=here, chain_fee_units=1)
    spend(purpose="cold", recipient=COLD, currency="USDT", token_units=20, mined=here, chain_fee_units=2)
    spend(recipient=DEPOSIT, token_units=30, mined=here, is_success=False, chain_fee_units=4)
    spend(purpose="filler", recipient=HOT, token_units=0, mined=here, chain_fee_units=8)
    spend(recipient=DEPOSIT, token_units=1_000, mined=(chain.height + 1, "0xlater"), chain_fee_units=1)
    read_books = books()

    assert read_books.topup_units == {"ETH": 100}
    assert sorted(read_books.flows, key=lambda flow: flow.currency) == [
        Flow("ETH", 18, -30 - 13 - 2),
        Flow("USDT", 18, 30),
    ]
    assert read_books.cooled == [Flow("USDT", 18, 20)]
    assert read_books.open == []


def test_a_spend_without_a_block_or_in_a_replaced_one_is_open(chain: Chain) -> None:
    pin_hot()
    sent = spend(recipient=STRANGER, token_units=1)
    moved = spend(recipient=STRANGER, token_units=1, mined=(chain.height, "0xreplaced"))
    taken_out = spend(recipient=STRANGER, token_units=1, state="confirmed")
    spend(recipient=STRANGER, token_units=1, state="dead")
    spend(purpose="sweep", sender=DEPOSIT, recipient=STRANGER, token_units=1)
    read_books = books()

    assert [each.id for each in read_books.open] == sorted([sent, moved, taken_out])
    assert read_books.flows == []


def test_an_address_that_pays_the_fee_is_moved_by_that_spend(chain: Chain) -> None:
    """In some families the payer of the fee may not be the sender: only the movements show it."""
    pin_hot()
    made = spend(purpose="sweep", sender=DEPOSIT, recipient=STRANGER, token_units=1, mined=(chain.height, "0xreplaced"))
    assert (books().open, addresses.is_in_motion("ethereum", [HOT])) == ([], False)
    execute(
        "INSERT INTO spend_movements (spend_id, network, address, currency, decimals, units, height)"
        " VALUES (%s, 'ethereum', %s, 'ETH', 18, -3, %s)",
        (made, HOT, chain.height),
    )
    read_books = books()
    assert ([each.id for each in read_books.open], read_books.flows) == ([made], [])
    assert addresses.is_in_motion("ethereum", [HOT])
    execute("UPDATE spends SET settled_at = app_now()")
    assert books().flows == [Flow("ETH", 18, -3)]


def test_a_settled_spend_counts_after_its_block_was_pruned(chain: Chain) -> None:
    pin_hot()
    spent = spend(recipient=STRANGER, token_units=7, mined=(chain.height - 50, "0xold"), state="confirmed")
    execute("UPDATE spends SET settled_at = app_now() WHERE id = %s", (spent,))
    assert books().flows == [Flow("ETH", 18, -7)]


def test_money_back_from_the_cold_address_is_separate(chain: Chain) -> None:
    pin_hot()
    assert addresses.set_cold("ethereum", COLD)
    topup(chain, 3, origin="cold")
    topup(chain, 4)
    read_books = books()
    assert (read_books.cold, read_books.topup_units, read_books.returned_units) == (COLD, {"ETH": 7}, {"ETH": 3})


def test_misses_count_at_rising_heights_and_end_with_a_match(database: str) -> None:
    del database
    wrong = Finding(currency="ETH", place="hot", height=10, chain_units=1, expected_units=2, detail="less")
    right = dataclasses.replace(wrong, height=13, detail="")

    def note(finding: Finding, height: int) -> int:
        return reconciliation.note("ethereum", dataclasses.replace(finding, height=height))

    assert [note(wrong, 10), note(wrong, 10), note(wrong, 11), note(wrong, 12)] == [1, 1, 2, 3]
    assert reconciliation.last_height("ethereum") == 12
    assert [note(right, 13), note(wrong, 14)] == [0, 1]
    assert [(kept.currency, kept.misses, kept.is_sound) for kept in reconciliation.listing()] == [("ETH", 1, False)]
    assert reconciliation.was_compared("ethereum", "ETH")
    assert not reconciliation.was_compared("ethereum", "USDT")


def adopted(read: reconciliation.Books, currency: str = "ETH") -> bool:
    return reconciliation.adopt("ethereum", currency, 5, read, origin="adopted")


def test_a_surplus_in_a_replaced_block_is_not_adopted(chain: Chain) -> None:
    pin_hot()
    chain.mine()
    gone = books()
    chain.fork(1)
    assert not adopted(gone)
    assert adopted(books())
    assert topup_rows() == [(5, "pending", "adopted")]


@pytest.mark.parametrize("is_older_first", [True, False])
def test_a_surplus_is_adopted_once_by_two_that_compared_at_different_blocks(
    chain: Chain, *, is_older_first: bool
) -> None:
    pin_hot()
    first = books()
    chain.mine()
    second = books()
    one, other = (first, second) if is_older_first else (second, first)
    assert (adopted(one), adopted(other)) == (True, False)
    assert topup_rows() == [(5, "pending", "adopted")]


def test_a_surplus_is_compared_again_once_its_books_have_changed(chain: Chain) -> None:
    pin_hot()
    here = (chain.height, chain._hash())
    read = books()
    topup(chain, 3)
    assert not adopted(read)
    read = books()
    # A transaction that no row named is a spend by now.
    spend(recipient=STRANGER, token_units=3, mined=here)
    assert not adopted(read)
    assert adopted(read, "USDT")
    assert adopted(books())


def test_a_spend_whose_block_is_noted_meanwhile_changes_no_surplus(chain: Chain) -> None:
    pin_hot()
    here = (chain.height, chain._hash())
    opened = [spend(recipient=STRANGER, token_units=3), spend(recipient=STRANGER, token_units=4, mined=(here[0], "0x"))]
    read = books()
    assert sorted(each.id for each in read.open) == sorted(opened)
    for spend_id, units in zip(opened, (3, 4), strict=True):
        execute("UPDATE spends SET (mined_height, mined_hash) = (%s, %s) WHERE id = %s", (*here, spend_id))
        execute(
            "INSERT INTO spend_movements (spend_id, network, address, currency, decimals, units, height)"
            " VALUES (%s, 'ethereum', %s, 'ETH', 18, %s, %s) ON CONFLICT DO NOTHING",
            (spend_id, HOT, -units, here[0]),
        )
    assert books().flows
    assert adopted(read)
