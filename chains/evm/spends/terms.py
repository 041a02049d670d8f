"""Names the figures of an EVM attempt: what of chains.spending.Offer is gas, and what a unit of it costs.

Rows keep them under these names, so that whoever offers more later knows what was offered before.
"""

from chains.spending import Offer


def gas_offer(*, gas_limit: int, price_units: int, tip_units: int, data_units: int = 0) -> Offer:
    """Return an offer of so many wei for a unit of gas, of which the tip is a part.

    data_units: what rollups add for posting the data, at most; 0 elsewhere.
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
