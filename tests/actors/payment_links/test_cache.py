"""Reads each link once in a process and keeps a bounded number of them."""

from __future__ import annotations

from uuid import UUID

import pytest

from core.errors import PaylinkNotFound
from core.ids import uuid7
from models.db.base import execute
from models.payment_links.cache import LinksCache
from tests.actors.payment_links.world import fill, link


def test_a_link_is_read_once_and_the_cache_is_bounded(shop: UUID, database: str) -> None:
    fill(database)
    links, cache = [link(shop) for _ in range(3)], LinksCache(size=2)
    before = [cache.read(one) for one in links]
    execute("DELETE FROM payment_links")

    # The third found no room in the cache.
    assert cache.read(links[2]) == before[2]
    for forgotten in (links[0], links[1], uuid7()):
        with pytest.raises(PaylinkNotFound):
            cache.read(forgotten)
