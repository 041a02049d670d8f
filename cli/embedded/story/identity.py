"""Makes a stack's own secrets at its first start, and keeps them. Read by cli.embedded.stack."""

from __future__ import annotations

import base64
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec

from cli.embedded.supervise.files import read_json, write_json
from core.catalogue.addresses import checksum_evm, keccak256

FILE_NAME: Final = "identity.json"
COORDINATE_BYTES: Final = 32
ADDRESS_BYTES: Final = 20


@dataclass(frozen=True, kw_only=True, repr=False)
class Identity:
    """Who this stack is. The buyer pays invoices; every chain gives it coin and tokens."""

    redis_password: str
    secret_keys: str
    mnemonic: str
    address_public_key: str
    buyer_key: str
    buyer_address: str


def load_identity(folder: Path) -> Identity:
    """Return the folder's identity, making it at the first time."""
    path = folder / FILE_NAME
    kept = read_json(path, default=None)
    if kept is not None:
        return Identity(**kept)
    identity = _new_identity()
    write_json(path, asdict(identity))
    return identity


def _new_identity() -> Identity:
    from chains.keys import Keys, new_mnemonic  # noqa: PLC0415  derivation is loaded at the first start alone

    mnemonic = new_mnemonic()
    buyer = ec.generate_private_key(ec.SECP256K1())
    return Identity(
        redis_password=secrets.token_urlsafe(24),
        secret_keys="dev1:" + base64.b64encode(secrets.token_bytes(32)).decode(),
        mnemonic=mnemonic,
        address_public_key=Keys(mnemonic).pool_public_key,
        buyer_key=f"0x{buyer.private_numbers().private_value:0{2 * COORDINATE_BYTES}x}",
        buyer_address=_evm_address(buyer.public_key().public_numbers()),
    )


def _evm_address(point: ec.EllipticCurvePublicNumbers) -> str:
    encoded = point.x.to_bytes(COORDINATE_BYTES, "big") + point.y.to_bytes(COORDINATE_BYTES, "big")
    return checksum_evm("0x" + keccak256(encoded)[-ADDRESS_BYTES:].hex())
