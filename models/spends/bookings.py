"""Books the costs of a spend: the gas that the chain took, and losses beyond its purpose.

Called by models.spends.tracking, in the transaction that ends an output or settles its spend.
"""

from __future__ import annotations

from core.catalogue.catalogue import Catalogue, Network
from core.money import rescale_down
from models.ledger import ledger
from models.ledger.ledger import CUSTODY, EQUITY, GAS, GATEWAY, Account, Transfer
from models.spends.outputs import OutputRow
from models.spends.rows import SpendRow


def fee_share(catalogue: Catalogue, spend: SpendRow, output: OutputRow) -> int:
    """Return an output's share of the gas, in the ledger's units of the gas coin."""
    share, rest = divmod(ledger_fee(catalogue, spend), len(spend.outputs))
    return share + (output.place < rest)


def owed_units(spend: SpendRow, output: OutputRow) -> int:
    """Return the token units of an included output that the bookings of its purpose account for.

    For a payout the amount that was to arrive; 0 for one that failed, or an output without a payout. For other purposes
    the amount that arrived, since between our own addresses only the rest has left custody.
    """
    if spend.purpose == "payout":
        return 0 if output.state == "failed" or output.payout_id is None else output.token_units
    return output.arrived_units or 0


def lost_units(catalogue: Catalogue, spend: SpendRow, output: OutputRow, *, owed: int) -> int:
    """Return the units that left beyond those owed, in the ledger's units; less than 0 if fewer left.

    Only outputs of another effect, of a lost spend, or of a payout that failed have any. owed: of owed_units(), or as
    an operator decided.
    """
    if spend.purpose == "lost":
        lost = _given_up(spend, output)
    elif output.effect == "other":
        lost = (output.left_units or 0) - owed
    elif output.effect == "exact" and spend.purpose == "payout":
        lost = output.token_units - owed
    else:
        return 0
    units = rescale_down(abs(lost), spend.decimals, catalogue.scale(spend.currency))
    return units if lost >= 0 else -units


def _given_up(spend: SpendRow, output: OutputRow) -> int:
    """Return the amount that left our addresses by an output of a written-off transaction, in token units."""
    if spend.sender == output.recipient:
        return 0
    return output.token_units if output.effect == "exact" else output.left_units or 0


def ledger_fee(catalogue: Catalogue, spend: SpendRow) -> int:
    """Return a spend's gas, in the ledger's units of the gas coin."""
    return gas_units(catalogue, spend.network, spend.chain_fee_units or 0)


def gas_units(catalogue: Catalogue, network: str, units: int) -> int:
    """Convert base units of a network's gas coin, also negative ones, to the ledger's units."""
    currency = catalogue.networks[network].gas_currency
    pair = catalogue.pair(currency, network)
    return units if pair is None else pair.to_ledger(units, catalogue.scale(currency))


def book_charges(network: Network, reference: str, units: int) -> None:
    """Book gas coin that a chain took without a spend; a negative number reverses that, or is a gain."""
    _book_out(reference, GAS, network.gas_currency, network.code, units)


def book_gas(catalogue: Catalogue, spend: SpendRow, reference: str, units: int) -> None:
    """Book gas that left custody; a negative number reverses gas that did not leave after all."""
    _book_out(reference, GAS, catalogue.networks[spend.network].gas_currency, spend.network, units)


def book_loss(spend: SpendRow, reference: str, units: int) -> None:
    """Book a loss: units that left custody uncharged; a negative number reverses those that did not leave."""
    _book_out(reference, EQUITY, spend.currency, spend.network, units)


def _book_out(reference: str, kind: str, currency: str, network: str, units: int) -> None:
    own, custody = Account(GATEWAY, kind, currency), Account(GATEWAY, CUSTODY, currency, network)
    ledger.post(reference, [Transfer(own, custody, units) if units >= 0 else Transfer(custody, own, -units)])
