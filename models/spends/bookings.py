"""Books what a spend cost: the gas that the chain took, and what left beyond what it was made for.

Called by models.spends.tracking, in the transaction that ends an output or settles its spend.
"""

from __future__ import annotations

from core.catalogue.catalogue import Catalogue
from core.money import rescale_down
from models.ledger import ledger
from models.ledger.ledger import CUSTODY, EQUITY, GAS, GATEWAY, Account, Transfer
from models.spends.outputs import OutputRow
from models.spends.rows import SpendRow


def fee_share(catalogue: Catalogue, spend: SpendRow, output: OutputRow) -> int:
    """Return what an output bears of what the chain took, in the ledger's units of the gas coin."""
    share, rest = divmod(ledger_fee(catalogue, spend), len(spend.outputs))
    return share + (output.place < rest)


def owed_units(spend: SpendRow, output: OutputRow) -> int:
    """Return what of a coin left custody by an output that took effect, as the books of whatever it was made for say.

    In token units: a payout takes what was to arrive, one that failed nothing; between our own addresses only what did
    not arrive has left.
    """
    if spend.purpose == "payout":
        return 0 if output.state == "failed" or output.payout_id is None else output.token_units
    return output.arrived_units or 0


def lost_units(catalogue: Catalogue, spend: SpendRow, output: OutputRow, *, owed: int) -> int:
    """Return what left beyond what is owed, in the ledger's units; less than 0 if less did. Of another effect, or lost.

    owed: what owed_units() says, or where somebody has said what became of it, what that is.
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
    """Return what left our addresses by a transaction that was written off, in token units."""
    if spend.sender == output.recipient:
        return 0
    return output.token_units if output.effect == "exact" else output.left_units or 0


def ledger_fee(catalogue: Catalogue, spend: SpendRow) -> int:
    """Return what the chain took, in the ledger's units of the gas coin."""
    currency = catalogue.networks[spend.network].gas_currency
    pair, units = catalogue.pair(currency, spend.network), spend.chain_fee_units or 0
    return units if pair is None else pair.to_ledger(units, catalogue.scale(currency))


def book_gas(catalogue: Catalogue, spend: SpendRow, reference: str, units: int) -> None:
    """Book gas that left custody, or with a negative number gas that did not leave after all."""
    _book_out(reference, GAS, catalogue.networks[spend.network].gas_currency, spend.network, units)


def book_loss(spend: SpendRow, reference: str, units: int) -> None:
    """Book what left custody uncharged; a negative number is what did not leave."""
    _book_out(reference, EQUITY, spend.currency, spend.network, units)


def _book_out(reference: str, kind: str, currency: str, network: str, units: int) -> None:
    own, custody = Account(GATEWAY, kind, currency), Account(GATEWAY, CUSTODY, currency, network)
    ledger.post(reference, [Transfer(own, custody, units) if units >= 0 else Transfer(custody, own, -units)])
