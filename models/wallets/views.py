"""Renders static wallets, their deposits and their event. Source: API reference, "Static wallets" and "Events"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core.addresses.addresses import display
from core.catalogue.catalogue import Catalogue
from core.texts.qr import QrTooLong, qr_data_uri
from core.texts.render import coin_text, iso_time
from models.deposits.rows import Deposit
from models.wallets.rows import WalletRow


def wallet(catalogue: Catalogue, shown: WalletRow) -> dict[str, Any]:
    """Return a static wallet object."""
    return {
        "uuid": str(shown.id),
        "address": _address(catalogue, shown),
        "network": shown.network,
        "currency": shown.currency,
        "order_id": shown.order_id,
        "url": "",
    }


def _address(catalogue: Catalogue, shown: WalletRow) -> str:
    return display(catalogue.networks[shown.network], shown.address)


def block(catalogue: Catalogue, shown: WalletRow) -> dict[str, Any]:
    """Return what blocking and unblocking answer."""
    return {"uuid": str(shown.id), "address": _address(catalogue, shown), "blocked": shown.is_blocked}


def info(catalogue: Catalogue, shown: WalletRow, deposits: Iterable[Deposit]) -> dict[str, Any]:
    """Return POST /v1/wallet/info."""
    return wallet(catalogue, shown) | {
        "blocked": shown.is_blocked,
        "deposits": [_deposit(catalogue, shown, deposit) for deposit in deposits],
    }


def _deposit(catalogue: Catalogue, shown: WalletRow, deposit: Deposit) -> dict[str, Any]:
    body = {
        "txid": deposit.txid,
        "currency": deposit.currency,
        "amount": coin_text(catalogue, deposit.currency, deposit.amount_units),
        "status": _deposit_status(deposit),
        "at": iso_time(deposit.seen_at),
    }
    return body if deposit.network == shown.network else body | {"network": deposit.network}


def _deposit_status(deposit: Deposit) -> str:
    """A confirmed deposit that is not credited says what keeps it: its size, or the block."""
    if deposit.shown_status != "confirmed":
        return deposit.shown_status
    return "dust" if deposit.stray_reason == "dust" else "blocked"


def webhook(catalogue: Catalogue, shown: WalletRow, deposit: Deposit) -> dict[str, Any]:
    """Return the body of a wallet.paid event."""
    return {
        "type": "wallet",
        "uuid": str(shown.id),
        "order_id": shown.order_id,
        "address": _address(catalogue, shown),
        "network": deposit.network,
        "currency": shown.currency,
        "payment_amount": coin_text(catalogue, deposit.currency, deposit.amount_units),
        "payer_currency": deposit.currency,
        "txid": deposit.txid,
        "status": "paid",
        "is_final": True,
    }


def qr_image(text: str) -> dict[str, Any]:
    """Return a text's QR code; an empty image if none holds it."""
    try:
        return {"image": qr_data_uri(text)}
    except QrTooLong:
        return {"image": ""}
