"""Daily caps hold for e-mails written at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from core.ids import uuid7
from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from models.db.base import close, one, rows, transaction
from models.merchants import emails
from models.merchants.emails import Draft, Post
from tests.models.builders import merchant
from tests.models.db.collisions import wait_until_somebody_waits

BOX = SecretBox(DEVELOPMENT_SECRET_KEYS)


@pytest.fixture(autouse=True)
def _post(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del database
    post = Post(box=BOX, pay_url="https://pay.example", recipient_day_max=1, merchant_day_max=2)
    monkeypatch.setattr("models.merchants.emails._Process.post", post)


def add(shop: UUID, *recipients: str) -> int:
    """Write e-mails; return the number within the caps."""
    drafts = [Draft(object_id=uuid7(), recipient=to, subject="", body=b"{}") for to in recipients]
    return len(emails.add(shop, drafts, kind="payment", box=BOX))


def add_alone(shop: UUID, *recipients: str) -> int:
    try:
        with transaction():
            return add(shop, *recipients)
    finally:
        close()


@pytest.mark.parametrize(
    ("first", "second"),
    [(["ann@mail.example"], "Ann+2@mail.example"), (["ann@mail.example", "bob@mail.example"], "eve@mail.example")],
)
def test_two_concurrent_writers_share_the_caps(first: list[str], second: str) -> None:
    shop = merchant()
    with ThreadPoolExecutor(1) as pool:
        with transaction():
            assert add(shop, *first) == len(first)
            waiting = pool.submit(add_alone, shop, second)
            wait_until_somebody_waits(limit_s=10)
        assert waiting.result() == 0
    assert one("SELECT count(*) FROM emails") == (len(first),)


def test_different_merchants_write_concurrently() -> None:
    first, second = merchant(), merchant()
    with transaction():
        assert add(first, "ann@mail.example") == 1
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(add_alone, second, "ann@mail.example").result() == 1
    assert rows("SELECT count(DISTINCT merchant_id) FROM emails") == [(2,)]
