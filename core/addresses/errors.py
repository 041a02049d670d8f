"""Names why a text is no address that money can be sent to."""


class AddressError(ValueError):
    """A text is no address that money can be sent to; its message says why."""


class ForeignAddressError(AddressError):
    """A text is the address of another kind of network."""


def nobody() -> AddressError:
    """Return the refusal of an address that is well formed and lost to everybody."""
    return AddressError("Nobody has the key of this address.")
