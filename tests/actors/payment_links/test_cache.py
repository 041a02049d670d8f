"""What links ask is read once a process, and no more of it is kept than so much."""

from __future__ import annotations

from uuid import UUID

import pytest

from core.errors import PaylinkNotFound
from core.ids import uuid7
from models.db.base import execute
from models.payment_links.cache import LinksCache
from tests.actors.payment_links.world import fill, link


def test_a_link_is_read_once_and_what_is_kept_is_bounded(shop: UUID, database: str) -> None:
    fill(database)
    links, cache = [link(shop) for _ in range(3)], LinksCache(size=2)
    before = [cache.read(one) for one in links]
    execute("DELETE FROM payment_links")

    # The third had no room beside the others.
    assert cache.read(links[2]) == before[2]
    for forgotten in (links[0], links[1], uuid7()):
        with pytest.raises(PaylinkNotFound):
            cache.read(forgotten)
