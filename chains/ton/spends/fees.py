"""Computes the cost of a spend, in base units of the coin: the wallet's request, and the ways of jettons.

Called by the reader for merchants' charges, and by the drafts for offers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from statistics import median_high
from typing import Final

from chains.base import Cost
from chains.net.providers import Providers
from chains.spending import FeeTooHighError, Offer
from chains.ton import messages, nodes, requests
from chains.ton.cells import Cell
from chains.ton.nodes import Toncenter
from chains.ton.requests import Request
from chains.ton.spends import prices
from chains.ton.spends.contents import NOTICE_UNITS, Figures
from chains.ton.spends.prices import Prices, Size
from chains.ton.transfers import CoinTransfer, JettonTransfer
from chains.ton.wallet import StateInit, wallet_state
from core.catalogue.catalogue import Pair

# The gas of a wallet's request, and of each of its messages; the tests compare it with the contract's own.
REQUEST_GAS: Final = 4_222
MESSAGE_GAS: Final = 717
# The margin on the computed fees, in percent.
MARGIN_PERCENT: Final = 20
# The gas of both jetton wallets, and the size of the message between them, which brings the state of the second.
JETTON_GAS: Final = 22_000
JETTON_WAY: Final = Size(cells=18, bits=8_000)
# The coin that jetton wallets keep for their rent: the sender's and the recipient's, which is made with it.
JETTON_KEPT_UNITS: Final = 20_000_000
# The rest of a message's coin comes back, so that more goes along than jetton wallets demand and take.
JETTON_MARGIN_PERCENT: Final = 50
# Rent goes on while a request is on its way.
RENT_AHEAD_S: Final = 600
# A sweep follows the coin for its fee within hours.
WAITING_S: Final = 86_400
# The gas of a wallet that receives coin.
RECEIPT_GAS: Final = 2_000

_NOBODY: Final = "0:" + "ff" * 32
_NO_SIGNATURE: Final = bytes(requests.SIGNATURE_BYTES)


def read(node: Toncenter) -> Prices:
    """Return the prices by one node."""
    return prices.read(nodes.config(node))


def agreed(providers: Providers[Toncenter], answers: Sequence[Prices]) -> Prices:
    """Return each price as the median of the nodes' prices, the higher of two.

    The chain has one. A node that decides alone may at most double the last price that two agreed on.
    """
    return Prices(**{each.name: _agreed(providers, each.name, answers) for each in fields(Prices)})


def _agreed(providers: Providers[Toncenter], name: str, answers: Sequence[Prices]) -> int:
    values: list[int] = [getattr(each, name) for each in answers]
    price = median_high(values)
    return providers.bounded(name, price, voices=values.count(price))


def of_request(by: Prices, made: Request, *, address: str, state: StateInit | None) -> int:
    """Return the most that a wallet's own transaction takes, rent apart. state: brought along with the first."""
    message = messages.external(address, requests.signed(made.cell(), _NO_SIGNATURE), state)
    sent = [action.message for action in made.actions]
    gas = by.of_gas(REQUEST_GAS + MESSAGE_GAS * len(sent))
    return _with_margin(by.of_message(message) + gas + sum(map(by.of_message, sent)))


def of_jettons(by: Prices, memo: str = "") -> int:
    """Return the most that a transfer of jettons takes after the wallet's own transaction, to a fresh recipient."""
    body = by.of_message(_jetton_message(memo))
    # The notice, and the way of what is left.
    ways = by.of_way(JETTON_WAY) + 3 * body
    return by.of_gas(JETTON_GAS) + ways + JETTON_KEPT_UNITS + NOTICE_UNITS


def gas_units(by: Prices, memos: Iterable[str]) -> int:
    """Return the coin that goes along with each transfer of jettons of a spend."""
    dearest = max(of_jettons(by, memo) for memo in memos)
    return dearest * (100 + JETTON_MARGIN_PERCENT) // 100


def of_receipt(by: Prices) -> int:
    """Return the highest cost of receiving coin."""
    return by.of_gas(RECEIPT_GAS)


def of_waiting(by: Prices) -> int:
    """Return the rent of a wallet from the coin for its fee until its request."""
    return by.rent((wallet_state(bytes(32), is_test=False).cell(),), WAITING_S)


def offer(fee_units: int, figures: Figures, *, count: int, cap_units: int) -> Offer:
    """Return the offer of a spend with this number of outputs. Raises FeeTooHighError above the cap, which is for one.

    fee_units: of the wallet's own transaction, with its rent. The coin that goes along with jettons counts as a whole.
    """
    ceiling = fee_units + count * figures.gas_units
    if ceiling > cap_units * count:
        raise FeeTooHighError(f"{count} transfers take up to {ceiling} units, and the cap of one is {cap_units}")
    return Offer(ceiling_units=ceiling, terms={"gas_units": figures.gas_units, "query_id": figures.query_id})


def costs(providers: Providers[Toncenter], pairs: Iterable[Pair], *, cap_units: int) -> Mapping[str, Cost]:
    """Return the present cost of moving each coin; of jettons, to a recipient that has no wallet of them yet."""
    by = agreed(providers, providers.answers(read))
    return {pair.currency: _cost(pair, by, cap_units) for pair in pairs}


def sweep_units(by: Prices, pair: Pair | None) -> int:
    """Return the cost of a sweep from a fresh address, with the transaction that funds its fee."""
    coin, first = _typical(by, _coin_message()), _typical(by, _coin_message(), is_first=True)
    if pair is None or pair.contract is None:
        return first
    return coin + _typical(by, _jetton_message(""), is_first=True) + of_jettons(by)


def _cost(pair: Pair, by: Prices, cap_units: int) -> Cost:
    payout = _typical(by, _coin_message())
    if pair.contract is not None:
        payout = _typical(by, _jetton_message("")) + of_jettons(by)
    return Cost(payout_units=min(payout, cap_units), sweep_units=min(sweep_units(by, pair), 2 * cap_units))


def _typical(by: Prices, message: Cell, *, is_first: bool = False) -> int:
    made = requests.request(0, seqno=0, valid_until=0, messages=[message])
    state = wallet_state(bytes(32), is_test=False) if is_first else None
    return of_request(by, made, address=_NOBODY, state=state)


def _coin_message() -> Cell:
    return CoinTransfer(recipient=_NOBODY, units=1, bounce=False).message()


def _jetton_message(memo: str) -> Cell:
    transfer = JettonTransfer(
        jetton_wallet=_NOBODY,
        gas_units=1,
        query_id=0,
        units=1 << 64,
        recipient=_NOBODY,
        excess_to=_NOBODY,
        forward_units=NOTICE_UNITS,
        memo=memo,
    )
    return transfer.message()


def _with_margin(units: int) -> int:
    return units * (100 + MARGIN_PERCENT) // 100
