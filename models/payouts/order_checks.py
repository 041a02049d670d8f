"""Checks every order for money to leave: coin and network, amount, fee, destination, and enough funds.

Called by the modules that create payouts, payout links and refunds, and by the API to compute without creating. Each
caller names the errors of its own domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NoReturn, Protocol
from uuid import UUID

import structlog

from core.addresses import addresses
from core.catalogue import hints
from core.catalogue.catalogue import Catalogue, Pair
from core.catalogue.families import traits_of
from core.errors import (
    ComplianceAddressBlocked,
    DomainError,
    PayoutAddressNetworkMismatch,
    PayoutAmountBelowFee,
    PayoutAssetMismatch,
    PayoutBadAddress,
    PayoutBadAmount,
    PayoutDestinationInternal,
    PayoutFeeUnavailable,
    PayoutMemoUnsupported,
    PayoutUnknownCurrency,
)
from core.money import mul_div_up, parse_units, round_up
from core.payouts.states import PayoutStatus
from core.rates.pricing import Market, Method, only_network
from core.texts.render import coin_text
from models.db.after_commit import then
from models.db.base import execute, is_true, one_as
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, MATURING, Account
from models.payouts import queue as payout_queue
from models.payouts.rows import PayoutRow


class Blocklist(Protocol):
    """The deny list's interface; core.payouts.deny_list implements it."""

    def blocks(self, address: str) -> bool:
        """Return True if nothing may be sent to an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodErrors:
    """The errors for a coin and for a network of it."""

    unknown_currency: type[DomainError]
    network: type[DomainError]


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationErrors:
    """The errors for an address that is invalid, of another kind of network, or our own."""

    bad: type[DomainError]
    mismatch: type[DomainError]
    internal: type[DomainError]


PAYOUT_METHOD: Final = MethodErrors(unknown_currency=PayoutUnknownCurrency, network=PayoutAssetMismatch)
PAYOUT_DESTINATION: Final = DestinationErrors(
    bad=PayoutBadAddress, mismatch=PayoutAddressNetworkMismatch, internal=PayoutDestinationInternal
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """A payout in the ledger's units: the amount asked for, the network fee, and the amount that arrives."""

    amount_units: int
    fee_units: int
    to_units: int
    is_fee_on_top: bool

    @property
    def held_units(self) -> int:
        """Return the units that leave the balance."""
        return self.to_units + self.fee_units


def choose_pair(
    catalogue: Catalogue,
    available: frozenset[str],
    *,
    currency: str,
    network: str | None,
    errors: MethodErrors = PAYOUT_METHOD,
) -> Pair:
    """Return the coin on the network that a request names; a coin's only network need not be named.

    Raises errors.unknown_currency, and errors.network for a network that is missing where there are several, does not
    carry the coin, or has no providers here.
    """
    if currency not in catalogue.assets:
        raise errors.unknown_currency(hints.unknown_coin(catalogue, currency))
    network = network or only_network(catalogue, currency)
    if network is None:
        raise errors.network(hints.network_needed(catalogue, currency, available))
    pair = catalogue.pair(currency, network)
    if pair is None or network not in available:
        raise errors.network(hints.unoffered(catalogue, currency, network, available))
    return pair


def amount_units(catalogue: Catalogue, currency: str, text: str, *, error: type[DomainError] = PayoutBadAmount) -> int:
    """Read an amount of a coin into the ledger's units. Raises `error` for zero and for too many digits."""
    asset = catalogue.assets[currency]
    units = parse_units(text, digits=asset.precision, error=error)
    if units == 0:
        raise error("amount must be more than zero.")
    return units * step(catalogue, currency)


def check_minimum(catalogue: Catalogue, pair: Pair, units: int, *, error: type[DomainError] = PayoutBadAmount) -> None:
    """Raise `error` for less than the network's smallest payout."""
    if units < minimum_units(catalogue, pair):
        raise error(f"The amount is below the smallest payout of {pair.currency} on {pair.network}.")


def minimum_units(catalogue: Catalogue, pair: Pair) -> int:
    """Return a pair's smallest payout in the ledger's units."""
    return pair.to_ledger(pair.min_payout_units, catalogue.scale(pair.currency))


def check_carried(
    catalogue: Catalogue, method: Method, *, address: str, units: int, error: type[DomainError] = PayoutAmountBelowFee
) -> None:
    """Raise `error` if the network does not carry an amount this small to a stored address.

    No node would pass on a transaction with such an output (docs/decisions/small-amounts.md).
    """
    least_units = carried_units(catalogue, method, address)
    if units < least_units:
        least = coin_text(catalogue, method[0], least_units)
        raise error(f"Less than {least} {method[0]} would arrive, which the network does not carry to this address.")


def carried_units(catalogue: Catalogue, method: Method, address: str) -> int:
    """Return the least amount that a network carries to a stored address, in the ledger's units."""
    currency, network = method
    return addresses.smallest_units(catalogue.networks[network], address) * step(catalogue, currency)


def step(catalogue: Catalogue, currency: str) -> int:
    """Return the ledger's units in one unit of a coin's precision: every amount is a multiple of it."""
    asset = catalogue.assets[currency]
    units: int = 10 ** (asset.scale - asset.precision)
    return units


def known_fee_units(catalogue: Catalogue, market: Market, method: Method) -> int | None:
    """Return a payout's network fee, rounded up to the coin's precision; None while unknown."""
    units = market.network_fees.get(method)
    return None if units is None else round_up(units, step(catalogue, method[0]))


def fee_units(catalogue: Catalogue, market: Market, currency: str, network: str) -> int:
    """Return a payout's network fee in the ledger's units. Raises payout.fee_unavailable."""
    units = known_fee_units(catalogue, market, (currency, network))
    if units is None:
        raise PayoutFeeUnavailable
    return units


def kept_units(catalogue: Catalogue, payout: PayoutRow, gas_units: int) -> int:
    """Return the part of its fee that a payout included without effect pays: the gas, in the payout's coin.

    gas_units: the gas, in the ledger's units of the gas coin. It is converted at the quote of the payout's creation,
    rounded up to the coin's precision, and is at most the fee charged; without a quote it is the whole fee.
    """
    if not payout.quote_gas_units or payout.quote_units is None:
        return payout.fee_units
    units = mul_div_up(gas_units, payout.quote_units, payout.quote_gas_units)
    return min(payout.fee_units, round_up(units, step(catalogue, payout.currency)))


def amounts(
    amount_units: int, fee_units: int, *, is_fee_on_top: bool, error: type[DomainError] = PayoutAmountBelowFee
) -> Amounts:
    """Price a payout. Raises `error` if the fee, taken out of the amount, leaves nothing of it."""
    to_units = amount_units if is_fee_on_top else amount_units - fee_units
    if to_units <= 0:
        raise error
    return Amounts(amount_units=amount_units, fee_units=fee_units, to_units=to_units, is_fee_on_top=is_fee_on_top)


def check_memo_carried(catalogue: Catalogue, network: str, memo: str | None) -> None:
    """Raise payout.memo_unsupported for a memo on a network whose transfers carry none."""
    if memo and not traits_of(catalogue.networks[network]).has_memo:
        raise PayoutMemoUnsupported


def check_destination(
    catalogue: Catalogue,
    deny_list: Blocklist,
    *,
    network: str,
    address: str,
    errors: DestinationErrors = PAYOUT_DESTINATION,
) -> str:
    """Return an address in the stored form, if money may go there.

    Raises errors.bad, also for the contracts of the network's coins, whose transfers to themselves are lost;
    errors.mismatch; errors.internal for any address of this gateway; and compliance.address_blocked.
    """
    there = catalogue.networks[network]
    try:
        stored = addresses.parse(there, address)
    except addresses.ForeignAddressError as refusal:
        raise errors.mismatch(str(refusal)) from None
    except addresses.AddressError as refusal:
        raise errors.bad(str(refusal)) from None
    if stored in _contracts(catalogue, network):
        raise errors.bad("The address is the contract of a coin.")
    if is_internal(there.family, stored):
        raise errors.internal
    # An oracle's recent verdict on another payout to this address; the signer asks again before it signs.
    if deny_list.blocks(stored) or payout_queue.verdict(network, stored):
        raise ComplianceAddressBlocked
    return stored


def _contracts(catalogue: Catalogue, network: str) -> frozenset[str]:
    there = catalogue.networks[network]
    return frozenset(
        addresses.parse(there, pair.contract) for pair in catalogue.pairs_on(network) if pair.contract is not None
    )


def is_internal(family: str, address: str) -> bool:
    """Return True if an address, in its stored form, is the gateway's own: a deposit address or the treasury's."""
    return is_true(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM pool_addresses WHERE (family, address) = (%s, %s))"
        " OR EXISTS (SELECT 1 FROM treasury_addresses WHERE address = %s)",
        (family, address, address),
    )


def raise_shortage(
    merchant_id: UUID, currency: str, wanted_units: int, *, insufficient: type[DomainError], maturing: type[DomainError]
) -> NoReturn:
    """Raise `maturing` if maturing credits will cover a shortage of available, else `insufficient`."""
    have, will_have = (ledger.balance(Account(merchant_id, kind, currency)) for kind in (AVAILABLE, MATURING))
    raise maturing if have + will_have >= wanted_units else insufficient


@dataclass(frozen=True, slots=True)
class Terms:
    """A merchant's defaults for payouts whose request leaves them open."""

    is_cosign_required: bool
    is_fee_on_top: bool

    @property
    def first_status(self) -> PayoutStatus:
        """Return the first status of a payout, unless the payout itself needs approval."""
        return "awaiting_cosign" if self.is_cosign_required else "approved"


def read_terms(merchant_id: UUID) -> Terms:
    """Read a merchant's terms of payouts. The merchant exists: its key was verified."""
    terms = "SELECT is_cosign_required, is_payout_fee_on_top AS is_fee_on_top FROM merchants WHERE id = %s"
    row = one_as(Terms, terms, (merchant_id,))
    if row is None:
        raise LookupError(f"merchant {merchant_id} does not exist")
    return row


def set_fee_on_top(merchant_id: UUID, *, is_fee_on_top: bool) -> None:
    """Set the default for payouts without is_subtract, from now on."""
    execute("UPDATE merchants SET is_payout_fee_on_top = %s WHERE id = %s", (is_fee_on_top, merchant_id))
    then(lambda: log.info("merchant.changed", merchant=str(merchant_id), terms=["is_payout_fee_on_top"]))
