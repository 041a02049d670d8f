"""Reads, checks and shows addresses by network. Called by whoever stores, matches or shows one.

Stored and matched: one spelling for each address, so that equality is equality of text (EVM: lower case). Shown: the
form in which its network writes it (EVM: EIP-55, whose capitals are a checksum). By network, since a family's networks
write differently: regtest has another prefix than bitcoin's main chain.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

from core.addresses import bitcoin, evm, solana, ton, tron
from core.addresses.errors import AddressError, ForeignAddressError

__all__ = ["AddressError", "ForeignAddressError", "display", "parse", "smallest_units", "stored_form"]


class Network(Protocol):
    """What is asked of a network; core.catalogue.catalogue, which asks how contracts are written, has it."""

    @property
    def family(self) -> str:
        """Return the family of chains that it belongs to."""

    @property
    def family_parameters(self) -> Any:
        """Return what only networks of its family have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How a family writes addresses. Parameters are those of its networks, see core.catalogue.families."""

    # What is stored of a text. Raises AddressError.
    parse: Callable[[str, Any], str]
    # What is shown of an address that is stored.
    display: Callable[[str, Any], str]
    # What would be stored of a text on any of the family's networks, even if it is nobody's; None for no address.
    stored: Callable[[str], str | None]
    # The least that the network carries to a stored address, in units of the coin's precision.
    smallest: Callable[[str], int] = lambda _: 1


_FORMS: Final[Mapping[str, _Form]] = MappingProxyType(
    {
        "evm": _Form(parse=evm.parse, display=evm.display, stored=evm.stored),
        "tron": _Form(parse=tron.parse, display=tron.display, stored=tron.stored),
        "solana": _Form(parse=solana.parse, display=solana.display, stored=solana.stored),
        "ton": _Form(parse=ton.parse, display=ton.display, stored=ton.stored),
        "bitcoin": _Form(
            parse=bitcoin.parse, display=bitcoin.display, stored=bitcoin.stored, smallest=bitcoin.smallest_units
        ),
    }
)


def parse(network: Network, text: str) -> str:
    """Return an address that somebody wrote as it is stored.

    Raises ForeignAddressError for another family's or another network's, told by checksum and length; and AddressError
    for what is none, is misspelt, or is nobody's.
    """
    try:
        return _FORMS[network.family].parse(text, network.family_parameters)
    except ForeignAddressError:
        raise
    except AddressError:
        if any(form.stored(text) is not None for family, form in _FORMS.items() if family != network.family):
            raise ForeignAddressError("The address is one of another kind of network.") from None
        raise


def display(network: Network, address: str) -> str:
    """Return a stored address as its network shows it."""
    return _FORMS[network.family].display(address, network.family_parameters)


def smallest_units(network: Network, address: str) -> int:
    """Return the least that a network carries to a stored address, in units of the coin's precision."""
    return _FORMS[network.family].smallest(address)


def stored_form(text: str) -> str | None:
    """Return the stored form of an address of any network there is, well spelt or nobody's alike; None for no address.

    No text is an address of two families.
    """
    return next((found for form in _FORMS.values() if (found := form.stored(text)) is not None), None)
