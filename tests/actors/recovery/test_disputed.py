"""An inclusion that one provider invented ends by itself once two others deny it."""

from __future__ import annotations

import contextlib
from unittest.mock import Mock

import pytest

from actors import network_ticks
from actors.recovery import disputed, seek
from chains.base import Agreement, ProviderError
from models.db.base import execute, one, transaction
from models.deposits import cursors
from models.spends import seen
from tests.actors.signer.world import SpendWorld


@pytest.fixture(autouse=True)
def _rested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disputed, "_rests_until", {})


def noted(world: SpendWorld) -> Mock:
    """Note an attempt whose window is over in the newest block; return providers that deny it."""
    world.order()
    world.step()
    world.outdate()
    row, cursor = one("SELECT txid FROM spend_attempts"), cursors.read(world.network.code)
    assert row is not None
    assert cursor is not None
    with transaction():
        assert seen.note(world.network.code, list(row), height=cursor.height, block_hash=cursor.hash) == 1
    chain = Mock(providers=2)
    chain.inclusions.side_effect = lambda _block, txids: dict.fromkeys(txids, Agreement(same=0, other=2))
    return chain


def test_an_inclusion_that_two_providers_deny_is_taken_back(world: SpendWorld) -> None:
    chain = noted(world)
    assert disputed.judge(world.network, chain) == 1
    assert (world.count("attempts_seen"), disputed.judge(world.network, chain)) == (0, 0)
    assert (chain.inclusions.call_count, chain.block.call_count) == (1, 0), "the scan keeps the block"


def test_a_window_that_is_counted_in_blocks_ends_too(world: SpendWorld) -> None:
    chain = noted(world)
    world.is_tampered = True
    execute("ALTER TABLE spend_attempts DISABLE TRIGGER spend_attempts_offered")
    execute("UPDATE spend_attempts SET expires_height = NULL, expires_at = NULL, expires_block = 5")
    for count, taken in ((5, 0), (6, 1)):
        execute("UPDATE chain_cursors SET block_count = %s", (count,))
        assert disputed.judge(world.network, chain) == taken


@pytest.mark.parametrize("voices", [(1, 1), (2, 2), (0, 1), (3, 2)])
def test_a_disputed_inclusion_stays_and_is_asked_about_rarely(world: SpendWorld, voices: tuple[int, int]) -> None:
    chain = noted(world)
    chain.inclusions.side_effect = lambda _block, txids: dict.fromkeys(
        txids, Agreement(same=voices[0], other=voices[1])
    )
    assert [disputed.judge(world.network, chain) for _ in range(2)] == [0, 0]
    assert (world.count("attempts_seen"), chain.inclusions.call_count) == (1, 1)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE spends SET mined_txid = '0x', mined_height = 1, mined_hash = '0x', is_success = true, effect = 'exact',"
        " chain_fee_units = 0, state = 'mined'",
        "UPDATE attempts_seen SET block_hash = '0xother'",
        "UPDATE spend_attempts SET expires_height = 10000000",
    ],
)
def test_other_notes_are_not_taken_back(world: SpendWorld, change: str) -> None:
    """Of a spend that is included, of a block that the scan does not have, and of bytes that may come yet."""
    chain = noted(world)
    world.is_tampered = True
    execute("ALTER TABLE spend_attempts DISABLE TRIGGER spend_attempts_offered")
    execute(change)
    assert disputed.judge(world.network, chain) == 0
    assert world.count("attempts_seen") == 1


def test_a_provider_that_fails_or_is_alone_ends_no_note(world: SpendWorld) -> None:
    chain = noted(world)
    chain.providers = 1
    assert (disputed.judge(world.network, chain), chain.inclusions.call_count) == (0, 0)
    chain.providers = 2
    chain.inclusions.side_effect = ProviderError("away")
    assert (disputed.judge(world.network, chain), world.count("attempts_seen")) == (0, 1)


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    ("network", "is_judged"), [("tron", True), ("ton", True), ("bitcoin", False), ("ethereum", False)]
)
def test_they_are_judged_where_time_ends_spends(
    monkeypatch: pytest.MonkeyPatch, network: str, *, is_judged: bool
) -> None:
    monkeypatch.setattr(disputed, "judge", judge := Mock())
    monkeypatch.setattr(seek, "unread", Mock(READ_PER_STEP=20))
    monkeypatch.setattr(seek, "missing", Mock())
    chain = Mock(budget=lambda **_: contextlib.nullcontext())
    monkeypatch.setattr(network_ticks, "reader", lambda *_: chain)
    seek.seek_departures(network)
    assert judge.called == is_judged
