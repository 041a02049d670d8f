"""Duties for a payment: it is credited once, at its depth, wherever reorgs put it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chains.base import Ours
from tests.chains.contract.conftest import OURS, RIGS
from tests.chains.contract.rig import OPTIONAL, Rig, stored

# Deeper than maturity, and than what is read at once.
DEPTHS = [1, 16, 128]


@pytest.mark.parametrize("each", RIGS, ids=[each.label() for each in RIGS])
def test_a_rig_lacks_exactly_its_listed_methods(each: type[Rig]) -> None:
    offers = {name for name in OPTIONAL if getattr(each, name) is not getattr(Rig, name)}
    for name, reason in each.lacks.items():
        print(f"{each.label()} lacks {name}: {reason}")  # noqa: T201  the list of what is not asked of it

    assert offers ^ each.lacks.keys() == set(OPTIONAL)
    assert offers & each.lacks.keys() == set()
    assert all(each.lacks.values())


def test_every_test_of_our_own_node_is_a_duty() -> None:
    duties = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    assert [name for name in OURS if f"def {name}(" not in duties] == []


def test_a_payment_is_credited_once_however_often_its_block_is_read(rig: Rig) -> None:
    mine = rig.invoice()
    payment = rig.pay(stored(mine), rig.price)
    rig.bury()
    rig.poll(3)
    rig.reread()
    rig.reread()

    assert (rig.status(mine), rig.credited(mine)) == ("paid", rig.price)
    assert rig.deposits() == [(payment.txid, "credited", 0)]


def test_overlapping_ranges_return_the_same_transfers(rig: Rig) -> None:
    """The result does not depend on the steps of a scan, or on where a scan begins again."""
    mine, began = rig.invoice(), rig.scanned()
    for _ in range(3):
        rig.pay(stored(mine), rig.price)
        rig.mine(14)

    class Everybody(Ours):
        def addresses(self, seen: object) -> object:
            return [address for address in seen if address == stored(mine)]  # type: ignore[attr-defined]

        def coins(self, _seen: object) -> object:
            return ()

    def read(after: int) -> list[tuple[int, str, str, int]]:
        collected = []
        while scans := rig.reader.scan(after, rig.tip(), Everybody()):  # type: ignore[arg-type]
            collected += [(s.block.height, t.txid, t.ordinal, t.units) for s in scans for t in s.transfers]
            after = scans[-1].block.height
        return collected

    whole = read(began)
    assert len(whole) == 3
    for after in range(began, rig.tip(), 7):
        assert read(after) == [one for one in whole if one[0] > after]


def test_nothing_is_credited_before_its_depth(rig: Rig) -> None:
    mine = rig.invoice()
    rig.pay(stored(mine), rig.price)
    rig.advance(rig.network.confirmations - 1)
    assert (rig.credited(mine), [status for _, status, _ in rig.deposits()]) == (0, ["pending"])

    rig.advance()
    assert rig.credited(mine) == rig.price


@pytest.mark.needs("pay_ripening")
def test_a_block_reward_is_credited_when_it_is_mature(rig: Rig) -> None:
    mine = rig.invoice()
    depth = rig.pay_ripening(stored(mine), rig.price)
    rig.advance(depth - 1)
    assert rig.credited(mine) == 0

    rig.advance()
    assert rig.credited(mine) == rig.price


@pytest.mark.parametrize("depth", DEPTHS)
def test_reorged_deposits_are_taken_back_and_included_again_count_once(rig: Rig, depth: int) -> None:
    mine, other = rig.invoice(), rig.invoice()
    # In this order, for a payer who counts.
    back, gone = rig.pay(stored(other), rig.price), rig.pay(stored(mine), rig.price)
    rig.mine(depth)
    rig.catch_up()
    rig.reorg(depth, (back, depth - 1))
    rig.advance(rig.network.confirmations)

    assert (rig.credited(mine), rig.credited(other)) == (0, rig.price)
    assert {(txid, status) for txid, status, _ in rig.deposits()} == {
        (gone.txid, "reversed"),
        (back.txid, "credited"),
    }
    assert (rig.status(mine), rig.status(other)) == ("check", "paid")


def test_a_reorg_in_the_middle_of_a_scan_is_followed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = rig.invoice(), rig.invoice()
    back = rig.pay(stored(other), rig.price)
    rig.pay(stored(mine), rig.price)
    paid, depth = rig.tip() + 1, 5 + rig.at_once
    rig.mine(depth)
    scan, reorgs = rig.reader.scan, iter([depth])

    def interrupted(*arguments: object, **more: object) -> object:
        # After the payments' block was recorded, and before all others were.
        if rig.scanned() >= paid and (due := next(reorgs, 0)):
            rig.reorg(due, (back, 3))
        return scan(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(rig.reader, "scan", interrupted)
    rig.poll()
    rig.advance(rig.network.confirmations)

    assert (rig.credited(mine), rig.credited(other)) == (0, rig.price)


@pytest.mark.needs("leave_hole")
@pytest.mark.parametrize("deeper", [0, 1, 2, 3])
def test_a_reorg_next_to_a_hole_is_followed(rig: Rig, deeper: int) -> None:
    """Whether the fork is above the hole, on it, or below it."""
    mine, other = rig.invoice(), rig.invoice()
    rig.advance(3)
    rig.leave_hole()
    back, _ = rig.pay(stored(other), rig.price), rig.pay(stored(mine), rig.price)
    rig.advance()
    rig.reorg(1 + deeper, (back, 0))
    rig.advance(rig.network.confirmations + 2)
    rig.reread()

    assert (rig.credited(mine), rig.credited(other)) == (0, rig.price)
