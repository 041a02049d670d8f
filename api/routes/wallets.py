"""Declares the endpoints of static wallets: permanent addresses whose deposits are all credited."""

from __future__ import annotations

from typing import Any, Final, cast
from uuid import UUID

from actors.queue.call_specs import BLOCK_WALLET, CREATE_WALLET
from api.endpoints import PAYMENT_KEYS, Actor, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from core import errors
from core.http.requests import page_size
from core.invoices.schemas import Image
from core.wallets.schemas import BlockWallet, CreateWallet, Wallet, WalletBlock, WalletInfo, WalletLookup, WalletQr
from models.wallets import deposits as wallet_deposits
from models.wallets import rows as wallets
from models.wallets import views as wallet_views
from models.wallets.rows import WalletRow


def read_info(gateway: Gateway, call: Call) -> Reply:
    """Return one wallet with a page of its deposits; another merchant's is treated as missing."""
    lookup = cast("WalletLookup", call.body)
    row = _find(call.merchant().merchant_id, lookup)
    if row is None:
        raise errors.WalletStaticNotFound
    deposits = wallet_deposits.page(row.id, limit=page_size(lookup.limit), offset=lookup.offset)
    return answered(wallet_views.info(gateway.catalogue, row, deposits))


def _find(merchant_id: UUID, lookup: WalletLookup) -> WalletRow | None:
    if lookup.uuid is not None:
        return wallets.find(merchant_id, wallet_id=UUID(lookup.uuid))
    return wallets.find_by_address(merchant_id, lookup.address or "")


def read_qr(gateway: Gateway, call: Call) -> Reply:
    """Return the QR code of any text, whether one of our addresses or not."""
    del gateway
    return answered(wallet_views.qr_image(cast("WalletQr", call.body).address))


_UUID: Final = "0190b3c6-6b1f-7d40-8c2a-5e4d3c2b1a09"
_ADDRESS: Final = "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"
EXAMPLE: Final[dict[str, Any]] = {
    "uuid": _UUID,
    "address": _ADDRESS,
    "network": "ethereum",
    "currency": "USDT",
    "order_id": "customer-77",
    "url": "",
}

ENDPOINTS: Final = (
    Endpoint(
        path="/v1/wallet",
        name="createWallet",
        tag="Static wallets",
        summary="Create a static wallet",
        description=(
            "Creates a permanent address. There is one for each currency, network and order_id, and a"
            " repeat returns it. Every deposit of a coin of the catalogue on its network, from the"
            " network's smallest deposit on, is credited less the percent fee, and announced by"
            " wallet.paid."
        ),
        rights=PAYMENT_KEYS,
        request=CreateWallet,
        result=Wallet,
        actor=Actor(spec=CREATE_WALLET),
        creates=True,
        examples={
            "request": {"currency": "USDT", "network": "ethereum", "order_id": "customer-77"},
            "result": EXAMPLE,
        },
    ),
    Endpoint(
        path="/v1/wallet/block",
        name="blockWallet",
        tag="Static wallets",
        summary="Block or unblock a static wallet",
        description=(
            "Deposits to a blocked wallet are held once they are confirmed, and credited when the wallet is unblocked."
        ),
        rights=PAYMENT_KEYS,
        request=BlockWallet,
        result=WalletBlock,
        actor=Actor(spec=BLOCK_WALLET),
        examples={
            "request": {"address": _ADDRESS, "is_force_block": True},
            "result": {"uuid": _UUID, "address": _ADDRESS, "blocked": True},
        },
    ),
    Endpoint(
        path="/v1/wallet/info",
        name="getWallet",
        tag="Static wallets",
        summary="Read a static wallet",
        description="Finds the wallet by uuid, or else by address. Its deposits are newest first.",
        rights=PAYMENT_KEYS,
        request=WalletLookup,
        result=WalletInfo,
        reader=read_info,
        is_search=True,
        errors=(errors.WalletStaticNotFound,),
        examples={
            "request": {"uuid": _UUID},
            "result": {
                **EXAMPLE,
                "blocked": False,
                "deposits": [
                    {
                        "txid": "0x" + "ab" * 32,
                        "currency": "USDC",
                        "amount": "25.5",
                        "status": "credited",
                        "at": "2025-11-24T15:00:00.000Z",
                    }
                ],
            },
        },
    ),
    Endpoint(
        path="/v1/wallet/qr",
        name="renderQr",
        tag="Static wallets",
        summary="Render a QR code",
        description="Draws an address or any other text. The image is empty if the text is too long for a QR code.",
        rights=PAYMENT_KEYS,
        request=WalletQr,
        result=Image,
        reader=read_qr,
        examples={"request": {"address": _ADDRESS}, "result": {"image": "data:image/png;base64,iVBORw0KGgo="}},
    ),
)
