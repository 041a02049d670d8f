"""Sets the addresses that a merchant's keys may sign from."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from actors.merchants.allowlist import set_allowlist
from core.errors import AllowlistBadIp, AllowlistLocksYouOut
from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from models.db.base import one
from models.merchants import rows as merchants
from tests.actors import asking
from tests.models.builders import merchant
from tests.models.queue.builders import info

pytestmark = pytest.mark.usefixtures("database")

HERE = "203.0.113.7"


def ask(merchant_id: UUID, ips: list[str] | None, source: str | None = HERE) -> Any:
    return asking.ask(set_allowlist, info(merchant_id), {"ips": ips, "source": source})


def test_a_list_is_set_read_replaced_and_removed(shop: UUID) -> None:
    assert ask(shop, None) == {"ips": []}
    assert ask(shop, [HERE + "/32", "2001:DB8::/32"]) == {"ips": [HERE, "2001:db8::/32"]}
    assert ask(shop, None, source=None) == {"ips": [HERE, "2001:db8::/32"]}
    assert ask(shop, ["203.0.113.0/24"]) == {"ips": ["203.0.113.0/24"]}
    assert ask(shop, [], source="198.51.100.1") == {"ips": []}


@pytest.mark.parametrize("source", ["198.51.100.1", "2001:db8::1", None])
def test_a_list_that_locks_out_its_caller_is_refused_and_changes_nothing(shop: UUID, source: str | None) -> None:
    ask(shop, [HERE])

    with pytest.raises(AllowlistLocksYouOut):
        ask(shop, ["203.0.113.0/24", HERE], source=source)
    assert ask(shop, None) == {"ips": [HERE]}
    assert one("SELECT count(*) FROM calls") == (2,)


def test_a_bad_entry_changes_nothing(shop: UUID) -> None:
    with pytest.raises(AllowlistBadIp):
        ask(shop, [HERE, "x"])
    assert ask(shop, None) == {"ips": []}


def test_a_list_belongs_to_its_merchant_and_is_read_with_each_of_its_keys(shop: UUID) -> None:
    box = SecretBox(DEVELOPMENT_SECRET_KEYS)
    mine = [merchants.create_key(shop, "unified", "", box).public_id for _ in range(2)]
    other = merchants.create_key(merchant(), "unified", "", box).public_id

    ask(shop, [HERE, "198.51.100.0/24"])

    key_rows = [merchants.find_key(public_id) for public_id in (*mine, other)]
    assert [list(key.ip_allowlist) for key in key_rows if key] == [[HERE, "198.51.100.0/24"]] * 2 + [[]]
