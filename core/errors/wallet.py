"""Names what is refused about static wallets, QR codes, transfers to the owner's wallet. Raised by api and actors."""

# ruff: noqa: N818 - errors are named after their codes.

from core.errors.base import DomainError


class WalletUnknownCurrency(DomainError, code="wallet.unknown_currency", status=400):
    """The currency is unknown."""


class WalletNoNetwork(DomainError, code="wallet.no_network", status=400):
    """The network is missing."""


class WalletUnsupportedNetwork(DomainError, code="wallet.unsupported_network", status=400):
    """The coin is not offered on this network."""


class WalletNoAddress(DomainError, code="wallet.no_address", status=400):
    """The address is missing."""


class WalletBadUuid(DomainError, code="wallet.bad_uuid", status=400):
    """The uuid is malformed."""


class WalletStaticNotFound(DomainError, code="wallet.static_not_found", status=404):
    """There is no such static wallet."""


class QrNoAddress(DomainError, code="qr.no_address", status=400):
    """The address is missing."""


class TransferNoPersonalWallet(DomainError, code="transfer.no_personal_wallet", status=400):
    """The merchant has no owner with a personal wallet."""


class TransferUnknownCurrency(DomainError, code="transfer.unknown_currency", status=400):
    """The currency is unknown."""


class TransferBadAmount(DomainError, code="transfer.bad_amount", status=400):
    """The amount is invalid."""


class PersonalAmountInvalid(DomainError, code="personal.amount_invalid", status=400):
    """The amount is not positive or malformed."""


class PersonalInsufficient(DomainError, code="personal.insufficient", status=400):
    """The balance is not enough."""
