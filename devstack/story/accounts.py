"""Makes a development stack's merchants and API keys, the same at every start. Called by devstack.stack."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from core.secrets.secretbox import SecretBox, SecretBoxError
from devstack.supervise.files import read_json, write_json
from models.merchants import rows as merchants

FILE_NAME: Final = "accounts.json"


@dataclass(frozen=True, kw_only=True, repr=False)
class ApiKey:
    """An API key with its secret."""

    public_id: str
    secret: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Accounts:
    """The shop, a second key of the same shop for approvals, and another merchant's shop."""

    merchant: ApiKey
    approver: ApiKey
    other_merchant: ApiKey

    def all(self) -> tuple[ApiKey, ...]:
        """Return all keys."""
        return (self.merchant, self.approver, self.other_merchant)


def ensure_accounts(folder: Path, secret_keys: str) -> Accounts:
    """Return the folder's accounts, or new ones if the database does not have them. Needs models.db.base connected."""
    path = folder / FILE_NAME
    box = SecretBox(secret_keys)
    kept = read_json(path, default=None)
    if kept is not None:
        accounts = Accounts(**{name: ApiKey(**key) for name, key in kept.items()})
        if all(_is_known(key, box) for key in accounts.all()):
            return accounts
    accounts = _new_accounts(box)
    write_json(path, asdict(accounts))
    return accounts


def _new_accounts(box: SecretBox) -> Accounts:
    shop = merchants.create_merchant("Demo shop").id
    other = merchants.create_merchant("Other shop").id
    return Accounts(
        merchant=_new_key(shop, "main", box),
        approver=_new_key(shop, "approver", box),
        other_merchant=_new_key(other, "main", box),
    )


def _new_key(merchant_id: UUID, label: str, box: SecretBox) -> ApiKey:
    issued = merchants.create_key(merchant_id, "unified", label, box)
    return ApiKey(public_id=issued.public_id, secret=issued.secret)


def _is_known(key: ApiKey, box: SecretBox) -> bool:
    row = merchants.find_key(key.public_id)
    if row is None:
        return False
    try:
        return merchants.open_secret(row, box) == key.secret
    except SecretBoxError:
        return False
