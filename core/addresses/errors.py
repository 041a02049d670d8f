"""Names why a text is no address that money can be sent to."""


class AddressError(ValueError):
    """A text is no address that money can be sent to; its message says why."""


class ForeignAddressError(AddressError):
    """A text is the address of another kind of network."""


class LostAddressError(AddressError):
    """An address is well formed, and no key can spend from it."""


def nobody() -> LostAddressError:
    """Return the refusal of an address that is well formed and lost to everybody."""
    return LostAddressError("Nobody has the key of this address.")
