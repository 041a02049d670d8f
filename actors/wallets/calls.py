"""Creates static wallets, blocks and unblocks them. The API calls it through the queue and waits for the answer."""

from __future__ import annotations

from collections.abc import Collection

from actors.context import Context, context
from actors.queue.broker import ring
from actors.queue.call_specs import BLOCK_WALLET, CREATE_WALLET
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.catalogue import hints
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from core.errors import (
    WalletNoNetwork,
    WalletStaticNotFound,
    WalletUnknownCurrency,
    WalletUnsupportedNetwork,
)
from core.ids import uuid7
from core.rates import pricing
from core.rates.pricing import Method, Terms
from core.wallets.schemas import BlockWallet, CreateWallet
from models.wallets import rows as wallets
from models.wallets import settlement as wallet_settlement
from models.wallets import views as wallet_views
from models.wallets.rows import WalletRow


@call_actor(CREATE_WALLET, body=CreateWallet)
def create_wallet(info: CallInfo, body: CreateWallet) -> CallReply:
    """Return the merchant's wallet for a coin, a network and an order_id; the first time, create it."""
    ctx, merchant_id = context(), info.merchant()
    terms = ctx.terms.refresh(merchant_id)
    # Looked up before an address is taken: most calls are repetitions, which must not use the pool.
    with recorded(info) as record:
        currency, network = _method(ctx, terms, body)
        wallet = wallets.find_by_order(merchant_id, currency, network, body.order_id or "")
        if wallet is not None:
            return record.store(wallet_views.wallet(ctx.catalogue, wallet))
        record.discard()
    family = ctx.catalogue.networks[network].family
    ordinal, address = ctx.addresses.take(family)
    new = WalletRow(
        id=uuid7(),
        merchant_id=merchant_id,
        currency=currency,
        network=network,
        order_id=body.order_id or "",
        address_ordinal=ordinal,
        address=address,
        fee_ppm=terms.fee_ppm,
        request_id=info.request_id,
    )
    return _create(ctx, info, new, family)


def _method(ctx: Context, terms: Terms, body: CreateWallet) -> Method:
    """Return the coin and network that a request names, if deposits there are watched and accepted now."""
    if body.currency not in ctx.catalogue.assets:
        raise WalletUnknownCurrency(hints.unknown_coin(ctx.catalogue, body.currency))
    network = body.network or pricing.only_network(ctx.catalogue, body.currency)
    if network is None:
        raise WalletNoNetwork
    method = (body.currency, network)
    acceptable = pricing.acceptable_methods(ctx.catalogue, terms, ctx.offered.read())
    if method not in acceptable:
        served = [other for coin, other in acceptable if coin == body.currency]
        raise WalletUnsupportedNetwork(hints.unoffered(ctx.catalogue, body.currency, network, served))
    return method


def _probed(ctx: Context, network: Network) -> Collection[str]:
    """Return the networks of a family on which coin may arrive without being listed in a block."""
    return ctx.catalogue.with_own_coin(network.family) if traits_of(network).has_hidden_transfers else ()


def _create(ctx: Context, info: CallInfo, new: WalletRow, family: str) -> CallReply:
    """Write a wallet; its address goes back to the pool if another call created the wallet meanwhile."""
    is_used = False
    try:
        with recorded(info) as record:
            created = wallets.create(new, family=family, probed=_probed(ctx, ctx.catalogue.networks[new.network]))
            wallet = created or wallets.find_by_order(new.merchant_id, new.currency, new.network, new.order_id)
            if wallet is None:
                raise LookupError("a wallet that was there is gone")
            reply = record.store(wallet_views.wallet(ctx.catalogue, wallet))
        is_used = created is not None
        return reply
    finally:
        if not is_used:
            ctx.addresses.give_back(family, new.address_ordinal)


@call_actor(BLOCK_WALLET, body=BlockWallet)
def block_wallet(info: CallInfo, body: BlockWallet) -> CallReply:
    """Block a wallet, or unblock it and credit its held deposits; `credit_unblocked_wallets` credits any rest."""
    ctx = context()
    with recorded(info) as record:
        wallet = wallets.find_by_address(info.merchant(), body.address)
        if wallet is None:
            raise WalletStaticNotFound
        wallet = wallets.set_blocked(wallet, is_blocked=body.is_force_block)
        reply = record.store(wallet_views.block(ctx.catalogue, wallet))
    if wallet.is_credit_due:
        wallet_settlement.credit_held(ctx.catalogue, wallet.id)
        ring("credit_unblocked_wallets")
    return reply
