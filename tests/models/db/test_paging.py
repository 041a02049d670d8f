"""Cursors lead to the end of a page, and other texts are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import pytest

from core.errors import PaymentBadCursor, WebhookBadCursor
from core.ids import least_id, uuid7
from models.db.paging import created_between, cut_page, decode_cursor, encode_cursor


class Row(NamedTuple):
    id: UUID


def test_a_cursor_reads_back_as_its_parts() -> None:
    last = uuid7()
    assert decode_cursor(encode_cursor(last), error=PaymentBadCursor) == last


@pytest.mark.parametrize("text", ["", "x", "AAAA", "A" * 21 + "B", "A" * 22 + "==", "A" * 23, "ü" * 22, "A" * 21 + "+"])
def test_an_invalid_cursor_is_refused_with_the_lists_own_error(text: str) -> None:
    with pytest.raises(WebhookBadCursor):
        decode_cursor(text, error=WebhookBadCursor)


@pytest.mark.usefixtures("database")
def test_a_time_is_bounded_by_possible_ids() -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)

    ids = [least_id((noon + timedelta(seconds=s)).timestamp()) for s in (-3601, -3600, 7200, 7201)]
    moments = [noon + timedelta(minutes=minutes) for minutes in (-1, 0, 59, 60)]
    end = noon + timedelta(hours=1)

    assert [all(created_between(each, noon, earliest=noon, end=end)) for each in ids] == [False, True, True, False]
    inside = [all(created_between(ids[1], each, earliest=noon, end=end)) for each in moments]
    assert inside == [False, True, True, False]
    assert set(created_between(ids[1], noon, earliest=None, end=None)) == {True}


def test_a_page_has_a_next_cursor_only_if_a_row_is_left() -> None:
    page_rows = [Row(uuid7()) for _ in range(3)]
    assert cut_page(page_rows, limit=3).next_cursor is None
    page = cut_page(page_rows, limit=2)
    assert page.items == page_rows[:2]
    assert decode_cursor(page.next_cursor or "", error=PaymentBadCursor) == page_rows[1].id
    assert cut_page([], limit=2) == cut_page([], limit=1)
