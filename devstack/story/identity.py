"""Makes a stack's own secrets at its first start, and keeps them. Read by devstack.stack."""

from __future__ import annotations

import base64
import secrets
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec

from devstack.supervise.files import read_json, write_json

FILE_NAME: Final = "identity.json"
KEY_BYTES: Final = 32


@dataclass(frozen=True, kw_only=True, repr=False)
class Identity:
    """The stack's secrets. The buyer pays invoices; every chain gives it coin and tokens, at an address of its own."""

    redis_password: str
    secret_keys: str
    mnemonic: str
    address_public_key: str
    buyer_key: str


def load_identity(folder: Path) -> Identity:
    """Return the folder's identity, made at the first start."""
    path = folder / FILE_NAME
    kept = read_json(path, default=None)
    if kept is not None:
        names = [part.name for part in fields(Identity)]
        return Identity(**{name: kept[name] for name in names})
    identity = _new_identity()
    write_json(path, asdict(identity))
    return identity


def _new_identity() -> Identity:
    from chains.keys import Keys, new_mnemonic  # noqa: PLC0415  derivation is loaded at the first start only

    mnemonic = new_mnemonic()
    buyer = ec.generate_private_key(ec.SECP256K1())
    return Identity(
        redis_password=secrets.token_urlsafe(24),
        secret_keys="dev1:" + base64.b64encode(secrets.token_bytes(32)).decode(),
        mnemonic=mnemonic,
        address_public_key=Keys(mnemonic).pool_public_key,
        buyer_key=f"0x{buyer.private_numbers().private_value:0{2 * KEY_BYTES}x}",
    )
