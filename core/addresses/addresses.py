"""Reads, checks and shows addresses by network. Called by all code that stores, matches or shows one.

The stored form has one spelling for each address, so that equal addresses are equal texts (EVM: lower case). The shown
form is the network's own (EVM: EIP-55, whose capitals are a checksum). It depends on the network, since a family's
networks write differently: regtest has another prefix than bitcoin's main chain.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

from core.addresses import bitcoin, evm, solana, ton, tron
from core.addresses.errors import AddressError, ForeignAddressError, LostAddressError

__all__ = [
    "AddressError",
    "ForeignAddressError",
    "LostAddressError",
    "display",
    "parse",
    "smallest_units",
    "stored_form",
]


class Network(Protocol):
    """The part of core.catalogue.catalogue's networks that addresses need; core.catalogue itself calls this module."""

    @property
    def family(self) -> str:
        """Return the network's family of chains."""

    @property
    def family_parameters(self) -> Any:
        """Return the parameters of the network's family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """The functions that read and write a family's addresses; parameters as in core.catalogue.families."""

    # Returns the stored form of a text. Raises AddressError.
    parse: Callable[[str, Any], str]
    # Returns the shown form of a stored address.
    display: Callable[[str, Any], str]
    # Returns the stored form of a text on any of the family's networks, unowned addresses included; None if invalid.
    stored: Callable[[str], str | None]
    # Returns the smallest transfer to a stored address, in units of the coin's precision.
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
    """Return the stored form of a written address.

    Raises ForeignAddressError for an address of another family or network, known by checksum and length, and
    AddressError for a text that is invalid, misspelt, or an address that no key can own.
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
    """Return the shown form of a stored address."""
    return _FORMS[network.family].display(address, network.family_parameters)


def smallest_units(network: Network, address: str) -> int:
    """Return the smallest transfer to a stored address, in units of the coin's precision."""
    return _FORMS[network.family].smallest(address)


def stored_form(text: str) -> str | None:
    """Return the stored form of an address of any network; None if the text is not an address.

    Unowned addresses count too. No text is an address of two families.
    """
    return next((address for form in _FORMS.values() if (address := form.stored(text)) is not None), None)
