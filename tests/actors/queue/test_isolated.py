"""A broken row delays no other; a lost store ends the whole step."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from actors.context import Context
from actors.queue.isolated import isolated
from actors.scan import record
from core.catalogue.catalogue import Catalogue
from models.db.base import StoreUnavailableError


class Shop:
    catalogue = None


def test_rows_after_a_broken_one_are_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, sound = uuid4(), uuid4()
    settled: list[UUID] = []

    def settle(_catalogue: Catalogue, owner_id: UUID) -> bool:
        if owner_id == broken:
            raise ValueError("a row that cannot be")
        settled.append(owner_id)
        return False

    monkeypatch.setitem(record.SETTLE, "invoice", settle)  # type: ignore[arg-type]
    ctx: Context = Shop()  # type: ignore[assignment]

    record.settle_owners(ctx, [("invoice", broken), ("invoice", sound)])

    assert settled == [sound]


def test_a_lost_store_ends_the_step() -> None:
    def step() -> None:
        raise StoreUnavailableError("gone")

    with pytest.raises(StoreUnavailableError):
        isolated(uuid4(), step)


def test_a_failed_step_returns_none() -> None:
    assert isolated(uuid4(), divmod, 1, 0) is None
    assert isolated(uuid4(), int, 3) == 3
