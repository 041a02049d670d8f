"""Keeps what payment links ask in a process's memory, since that never changes. Used by actors.payment_links."""

from __future__ import annotations

import threading
from uuid import UUID

from core.errors import PaylinkNotFound
from models.payment_links import rows as payment_links
from models.payment_links.rows import PaymentLinkRow


class LinksCache:
    """Links that this process sold over lately. Whether one is open is for PostgreSQL to say."""

    def __init__(self, *, size: int = 2_000) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._links: dict[UUID, PaymentLinkRow] = {}

    def read(self, link_id: UUID) -> PaymentLinkRow:
        """Return what a link asks, be it open or not. Raises PaylinkNotFound."""
        link = self._links.get(link_id)
        return link if link is not None else self._load(link_id)

    def _load(self, link_id: UUID) -> PaymentLinkRow:
        link = payment_links.find_any(link_id)
        if link is None:
            raise PaylinkNotFound
        with self._lock:
            if len(self._links) >= self._size:
                self._links.clear()
            self._links[link_id] = link
        return link
