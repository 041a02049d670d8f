"""Cursors lead to where a page ended, and nothing else is one."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import pytest

from core.errors import PaymentBadCursor, WebhookBadCursor
from core.ids import uuid7
from models.db.paging import cut_page, decode_cursor, encode_cursor


class Row(NamedTuple):
    id: UUID


def test_a_cursor_comes_back_as_what_it_was_made_of() -> None:
    last = uuid7()
    assert decode_cursor(encode_cursor(last), error=PaymentBadCursor) == last


@pytest.mark.parametrize("text", ["", "x", "AAAA", "A" * 21 + "B", "A" * 22 + "==", "A" * 23, "ü" * 22, "A" * 21 + "+"])
def test_anything_else_is_refused_with_the_lists_own_error(text: str) -> None:
    with pytest.raises(WebhookBadCursor):
        decode_cursor(text, error=WebhookBadCursor)


def test_a_page_has_a_next_one_only_where_a_row_was_left_over() -> None:
    found = [Row(uuid7()) for _ in range(3)]
    assert cut_page(found, limit=3).next_cursor is None
    page = cut_page(found, limit=2)
    assert page.items == found[:2]
    assert decode_cursor(page.next_cursor or "", error=PaymentBadCursor) == found[1].id
    assert cut_page([], limit=2) == cut_page([], limit=1)
