"""Derives claim tokens from a link's id and a secret key alone."""

from __future__ import annotations

import base64
import hashlib
import string
from uuid import UUID

import pytest

from core.payout_links.tokens import ClaimTokens, claim_url, is_token, token_hash

LINK = UUID("0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d")
OTHER = UUID("0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4e")


def keys(*entries: tuple[str, bytes]) -> str:
    return ",".join(f"{kid}:{base64.b64encode(byte * 32).decode()}" for kid, byte in entries)


OLD = keys(("old", b"a"))
ROTATED = keys(("new", b"b"), ("old", b"a"))


def test_a_token_is_stable_and_unique_to_its_link() -> None:
    tokens = ClaimTokens(OLD)

    assert tokens.token(LINK, "old") == ClaimTokens(OLD).token(LINK, "old")
    assert tokens.token(LINK, "old") != tokens.token(OTHER, "old")
    assert is_token(tokens.token(LINK, "old"))


def test_a_new_key_makes_other_tokens_and_the_old_key_still_makes_its_own() -> None:
    old, rotated = ClaimTokens(OLD), ClaimTokens(ROTATED)

    assert (old.current, rotated.current) == ("old", "new")
    assert rotated.token(LINK, "new") != old.token(LINK, "old")
    assert rotated.token(LINK, "old") == old.token(LINK, "old")
    assert rotated.new_hash(LINK) == token_hash(rotated.token(LINK, "new"))


def test_a_missing_key_makes_no_token() -> None:
    with pytest.raises(KeyError):
        ClaimTokens(OLD).token(LINK, "new")


def test_the_sealing_key_itself_signs_nothing() -> None:
    """Strangers see a token, so it is signed by a derived key."""
    import hmac  # noqa: PLC0415  the one test that computes by hand

    plain = base64.urlsafe_b64encode(hmac.digest(b"a" * 32, LINK.bytes, "sha256")).decode().rstrip("=")

    assert ClaimTokens(OLD).token(LINK, "old") != plain


def test_the_stored_hash_is_the_sha256_of_the_token() -> None:
    token = ClaimTokens(OLD).token(LINK, "old")

    assert ClaimTokens(OLD).new_hash(LINK) == hashlib.sha256(token.encode()).digest()


@pytest.mark.parametrize("text", ["", "A" * 42, "A" * 44, "A" * 42 + "B", "A" * 42 + "=", "ä" * 43, "A" * 43 + "\n"])
def test_a_malformed_token_is_recognised_by_its_form(text: str) -> None:
    assert not is_token(text)


def test_a_token_has_one_spelling() -> None:
    token = ClaimTokens(OLD).token(LINK, "old")
    others = [token[:-1] + char for char in string.ascii_letters + string.digits + "_-" if char != token[-1]]
    same_bytes = [
        text for text in others if base64.urlsafe_b64decode(text + "=") == base64.urlsafe_b64decode(token + "=")
    ]

    assert len(same_bytes) == 3
    assert not any(map(is_token, same_bytes))


def test_a_tokens_page_has_its_url() -> None:
    assert claim_url("https://pay.example", "abc") == "https://pay.example/claim/abc"
