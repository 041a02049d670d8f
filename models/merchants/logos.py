"""Keeps the logos of merchants, found by the digest of their bytes. Called by cli, and by api for buyers' browsers."""

from __future__ import annotations

import hashlib
import re
from typing import Final
from uuid import UUID

from core.merchants.logos import clean_png
from models.db.base import execute, one
from models.db.table import Table
from models.merchants import rows as merchants

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class MerchantLogo(Table, table="merchant_logos"):
    """A merchant's logo, a PNG file, with the digest that is its address."""

    merchant_id: UUID
    digest: str
    png: bytes


def set_logo(merchant_id: UUID, content: bytes | None) -> None:
    """Set a merchant's logo from a PNG file's content; None ends it. Raises LogoError and UnknownMerchantError."""
    merchants.check_exists(merchant_id)
    merchants.note_changed(merchant_id, "logo")
    if content is None:
        execute("DELETE FROM merchant_logos WHERE merchant_id = %s", (merchant_id,))
        return
    png = clean_png(content)
    execute(
        "INSERT INTO merchant_logos (merchant_id, digest, png) VALUES (%s, %s, %s)"
        " ON CONFLICT (merchant_id) DO UPDATE SET digest = EXCLUDED.digest, png = EXCLUDED.png",
        (merchant_id, hashlib.sha256(png).hexdigest(), png),
    )


def read_logo(digest: str) -> bytes | None:
    """Return the logo of a digest; None if no merchant has it."""
    if _DIGEST.fullmatch(digest) is None:
        return None
    row = one("SELECT png FROM merchant_logos WHERE digest = %s LIMIT 1", (digest,))
    return None if row is None else bytes(row[0])
