"""What the actors of one process share: settings, catalogue, quotes, terms and addresses. Built once by actors.main."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.catalogue import load_catalogue
from models.address_pool import AddressStash
from models.rates import MarketBoard
from models.terms import TermsCache

if TYPE_CHECKING:
    from core.catalogue import Catalogue
    from core.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The process's shared objects; all are safe to use from several threads."""

    settings: Settings
    catalogue: Catalogue
    # The networks that this gateway has providers for.
    available: frozenset[str]
    market: MarketBoard
    terms: TermsCache
    addresses: AddressStash


class _Holder:
    context: Context | None = None


def configure(settings: Settings) -> Context:
    """Build the process's context; called once, before any actor runs."""
    _Holder.context = Context(
        settings=settings,
        catalogue=load_catalogue(settings.environment),
        available=frozenset(settings.rpc_urls),
        market=MarketBoard(),
        terms=TermsCache(),
        addresses=AddressStash(settings.address_public_key),
    )
    return _Holder.context


def context() -> Context:
    """Return the process's context."""
    if _Holder.context is None:
        raise RuntimeError("actors.context.configure() has not been called")
    return _Holder.context
