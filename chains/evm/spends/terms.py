"""Names the figures of an EVM attempt in chains.spending.Offer: its gas, and the price of a unit.

Rows keep them under these names, so that the signer knows the last offer when it raises one.
"""

from chains.spending import Offer


def gas_offer(*, gas_limit: int, price_units: int, tip_units: int, data_units: int = 0) -> Offer:
    """Return an offer of a price for a unit of gas, in wei; the tip is a part of the price.

    data_units: the most that a rollup charges for posting the data; 0 elsewhere.
    """
    return Offer(
        ceiling_units=gas_limit * price_units + data_units,
        terms={
            "gas_limit": gas_limit,
            "price_units": price_units,
            "tip_units": tip_units,
            "data_units": data_units,
        },
    )
