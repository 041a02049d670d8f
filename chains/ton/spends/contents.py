"""Makes the messages that a spend has its wallet send, and reads a request back. Used by drafts and spender."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from chains.spending import Intent
from chains.ton import boc, messages, requests
from chains.ton.cells import Cell, CellError
from chains.ton.jettons import Jetton
from chains.ton.requests import Request
from chains.ton.transfers import CoinTransfer, JettonTransfer, transfer_of
from core.addresses import ton

# The notice that a recipient's contract gets of jettons has to carry some coin.
NOTICE_UNITS: Final = 1
_NO_SIGNATURE: Final = bytes(requests.SIGNATURE_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The parts of a spend's messages that its intent does not name.

    bounces: for each output, whether coin returns that its recipient refuses. query_id: names the spend's transfers of
    jettons. gas_units: the coin that goes along with each of these.
    """

    bounces: tuple[bool, ...]
    query_id: int
    gas_units: int


def jetton_of(intent: Intent, jettons: Mapping[str, Jetton]) -> Jetton | None:
    """Return the jetton that an intent moves; None for coin. Raises ValueError if its wallets are not known."""
    contract = None if intent.pair is None else intent.pair.contract
    if contract is None:
        return None
    jetton = jettons.get(ton.stored(contract) or "")
    if jetton is None:
        raise ValueError(f"the wallets of {contract} are not known")
    return jetton


def transfers(intent: Intent, jetton: Jetton | None, figures: Figures) -> list[CoinTransfer | JettonTransfer]:
    """Return the transfers of an intent, one for each output."""
    if jetton is None:
        return [
            CoinTransfer(recipient=output.recipient, units=output.units, bounce=bounce, memo=output.memo)
            for output, bounce in zip(intent.outputs, figures.bounces, strict=True)
        ]
    wallet = intent.wallet
    return [
        JettonTransfer(
            jetton_wallet=jetton.wallet(wallet.address),
            gas_units=figures.gas_units,
            query_id=figures.query_id,
            units=output.units,
            recipient=output.recipient,
            # The rest of a sweep's coin goes home with the jettons.
            excess_to=wallet.address if wallet.ordinal is None else output.recipient,
            # Our own hot wallet needs no notice.
            forward_units=NOTICE_UNITS if wallet.ordinal is None else 0,
            memo=output.memo,
        )
        for output in intent.outputs
    ]


def request(intent: Intent, jetton: Jetton | None, figures: Figures, *, wallet_id: int, valid_until: int) -> Request:
    """Return the request for an intent's messages, with 0 instead of its number."""
    cells = [transfer.message() for transfer in transfers(intent, jetton, figures)]
    return requests.request(wallet_id, seqno=0, valid_until=valid_until, messages=cells)


def plan(made: Request) -> bytes:
    """Return a request that is not signed as bytes."""
    return boc.write(requests.signed(made.cell(), _NO_SIGNATURE))


def read_plan(raw: bytes) -> Request:
    """Return the request in a draft's plan. Raises ValueError."""
    try:
        return requests.read(boc.read(raw)).request
    except CellError as error:
        raise ValueError(f"a draft without a request: {error}") from None


def figures_of(made: Request) -> Figures:
    """Return the figures of a request's messages. Raises ValueError if they are no transfers of one kind."""
    made_transfers = [_transfer(action.message) for action in made.actions]
    coins = [each for each in made_transfers if isinstance(each, CoinTransfer)]
    if len(coins) == len(made_transfers):
        return Figures(bounces=tuple(each.bounce for each in coins), query_id=0, gas_units=0)
    jettons = [each for each in made_transfers if isinstance(each, JettonTransfer)]
    named = {(each.query_id, each.gas_units) for each in jettons}
    if len(jettons) != len(made_transfers) or len(named) != 1:
        raise ValueError("messages that are not the transfers of one spend")
    [(query_id, gas_units)] = named
    return Figures(bounces=(True,) * len(jettons), query_id=query_id, gas_units=gas_units)


def _transfer(message: Cell) -> CoinTransfer | JettonTransfer:
    transfer = transfer_of(messages.read(message))
    if transfer is None:
        raise ValueError("a message that is no transfer in our form")
    return transfer
