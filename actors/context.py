"""Keeps what a process's actors share: settings, catalogue, quotes, terms and addresses. Built once by actors.main."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from core.catalogue.catalogue import Catalogue
from core.payouts.deny_list import DenyList, DenyListError
from core.settings.settings import Settings, SettingsError
from models.addresses.pool import AddressStash
from models.addresses.spare import AddressReserve
from models.deposits.offered import OfferedNetworks
from models.merchants import emails
from models.merchants.terms import TermsCache
from models.payment_links.cache import LinksCache
from models.rates.rates import MarketBoard

# In such a short time few addresses are taken, and many checkouts done.
SPARE_FRESH_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The process's shared objects; all are safe to use from several threads."""

    settings: Settings
    catalogue: Catalogue
    # The networks that this gateway has providers for.
    available: frozenset[str]
    # The available networks on which buyers may pay.
    offered: OfferedNetworks
    market: MarketBoard
    terms: TermsCache
    links: LinksCache
    addresses: AddressStash
    # Whether there are addresses to spare for checkouts of payment links.
    spare: AddressReserve
    # Addresses to which the operator allows no payout.
    deny_list: DenyList


class _Holder:
    context: Context | None = None


def configure(settings: Settings, *, is_current: Callable[[], bool] = lambda: True) -> Context:
    """Build the process's context; called once, before any actor runs. Raises SettingsError.

    No address is handed out while `is_current` returns False: the database may have gone back.
    """
    try:
        deny_list = DenyList(settings.deny_list)
    except DenyListError as error:
        raise SettingsError([str(error)]) from error
    emails.use(settings)
    _Holder.context = Context(
        settings=settings,
        catalogue=settings.catalogue,
        available=frozenset(settings.rpc_urls),
        offered=OfferedNetworks(frozenset(settings.rpc_urls)),
        market=MarketBoard(),
        terms=TermsCache(settings.standard_terms),
        links=LinksCache(),
        addresses=AddressStash(settings.address_public_key, environment=settings.environment, is_current=is_current),
        spare=AddressReserve(settings.pool_low // 2, fresh_s=SPARE_FRESH_S),
        deny_list=deny_list,
    )
    return _Holder.context


def context() -> Context:
    """Return the process's context."""
    if _Holder.context is None:
        raise RuntimeError("actors.context.configure() has not been called")
    return _Holder.context
