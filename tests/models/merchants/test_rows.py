"""Owners, merchants and keys: a secret is shown once, stored sealed, and opens for its own key alone."""

import base64
from typing import get_args
from uuid import uuid4

import pytest

from core.secrets.secretbox import SecretBox, SecretBoxError
from models.db.base import execute, one, rows
from models.merchants.rows import (
    AmbiguousOwnerError,
    IdentityError,
    KeyKind,
    UnknownKeyError,
    UnknownMerchantError,
    UnknownOwnerError,
    create_key,
    create_merchant,
    find_key,
    list_merchants,
    open_secret,
    revoke_key,
)

pytestmark = pytest.mark.usefixtures("database")

BOX = SecretBox("k:" + base64.b64encode(b"k" * 32).decode())


def test_a_merchant_gets_an_owner_of_its_own() -> None:
    one_shop, other_shop = create_merchant("Shop"), create_merchant("Shop")
    assert one_shop.owner_name == "Shop"
    assert one_shop.owner_id != other_shop.owner_id


def test_merchants_of_one_owner_share_it() -> None:
    first, second = create_merchant("First", "Alice"), create_merchant("Second", "Alice")
    assert first.owner_id == second.owner_id
    assert create_merchant("Third", first.owner_id).owner_id == first.owner_id


def test_an_ambiguous_owner_name_is_refused() -> None:
    create_merchant("Shop")
    create_merchant("Shop")
    with pytest.raises(AmbiguousOwnerError):
        create_merchant("Third", "Shop")
    assert one("SELECT count(*) FROM merchants") == (2,)


def test_an_unknown_owner_id_creates_no_merchant() -> None:
    with pytest.raises(UnknownOwnerError):
        create_merchant("Shop", uuid4())
    assert one("SELECT count(*) FROM merchants") == (0,)


@pytest.mark.parametrize("name", ["", "  ", "a" * 256, "a\nb", "a\x00b", "\u202eabc", "\ud800"])
def test_an_unusable_name_is_refused(name: str) -> None:
    with pytest.raises(IdentityError):
        create_merchant(name)
    with pytest.raises(IdentityError):
        create_merchant("Shop", name)
    assert one("SELECT (SELECT count(*) FROM merchants) + (SELECT count(*) FROM owners)") == (0,)


def test_merchants_are_listed_newest_first_and_bounded() -> None:
    names = ["a", "b", "c"]
    created = [create_merchant(name) for name in names]
    assert list_merchants() == created[::-1]
    assert list_merchants(1) == created[2:]


@pytest.mark.parametrize("kind", get_args(KeyKind))
def test_a_key_is_found_and_its_secret_opens(kind: KeyKind) -> None:
    merchant = create_merchant("Shop")
    issued = create_key(merchant.id, kind, "label", BOX)
    key = find_key(issued.public_id)
    assert key is not None
    assert (key.merchant_id, key.kind, key.public_id) == (merchant.id, kind, issued.public_id)
    assert open_secret(key, BOX) == issued.secret


def test_public_id_and_secret_have_their_forms() -> None:
    issued = create_key(create_merchant("Shop").id, "unified", "", BOX)
    assert issued.public_id.startswith("pk_")
    assert len(issued.public_id) == 27
    assert issued.secret.startswith("sk_")
    assert len(issued.secret) == 46


def test_the_secret_is_not_stored_in_plain_text() -> None:
    issued = create_key(create_merchant("Shop").id, "unified", "", BOX)
    (stored,) = rows("SELECT api_keys::text FROM api_keys")
    assert issued.secret not in stored[0]
    assert issued.secret.removeprefix("sk_") not in stored[0]


def test_a_secret_copied_to_another_key_does_not_open() -> None:
    merchant = create_merchant("Shop")
    mine, other = create_key(merchant.id, "unified", "", BOX), create_key(merchant.id, "unified", "", BOX)
    execute(
        "UPDATE api_keys SET secret_box = (SELECT secret_box FROM api_keys WHERE public_id = %s) WHERE public_id = %s",
        (mine.public_id, other.public_id),
    )
    key = find_key(other.public_id)
    assert key is not None
    with pytest.raises(SecretBoxError):
        open_secret(key, BOX)


def test_a_key_for_an_unknown_merchant_is_refused() -> None:
    with pytest.raises(UnknownMerchantError):
        create_key(uuid4(), "unified", "", BOX)


def test_an_unusable_label_is_refused() -> None:
    with pytest.raises(IdentityError):
        create_key(create_merchant("Shop").id, "unified", "a\x00", BOX)


def test_a_revoked_key_is_not_found() -> None:
    issued = create_key(create_merchant("Shop").id, "unified", "", BOX)
    assert revoke_key(issued.public_id)
    assert find_key(issued.public_id) is None
    assert not revoke_key(issued.public_id)


def test_revoking_again_keeps_the_first_time() -> None:
    issued = create_key(create_merchant("Shop").id, "unified", "", BOX)
    revoke_key(issued.public_id)
    before = one("SELECT revoked_at FROM api_keys")
    revoke_key(issued.public_id)
    assert one("SELECT revoked_at FROM api_keys") == before


def test_revoking_one_key_leaves_the_others() -> None:
    merchant = create_merchant("Shop")
    mine, other = create_key(merchant.id, "unified", "", BOX), create_key(merchant.id, "unified", "", BOX)
    revoke_key(mine.public_id)
    assert find_key(other.public_id) is not None


@pytest.mark.parametrize(
    "public_id",
    ["", "pk_", "pk_" + "a" * 24, "pk_" + "A" * 24, "pk_\x00" + "a" * 23, "é", "' OR 1=1 --", "pk_" + "1" * 24],
)
def test_a_malformed_key_is_not_found(public_id: str) -> None:
    assert find_key(public_id) is None
    with pytest.raises(UnknownKeyError):
        revoke_key(public_id)
