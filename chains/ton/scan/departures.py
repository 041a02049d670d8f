"""Reads a whole request that one of our wallets took, so that it can be followed like a recorded spend.

Called by chains.ton.reader for transactions that the scan found leaving our addresses without a row. Its bytes carry
the request with its signature, and the address is a hash of the key, so no node can invent one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from chains.base import Block
from chains.spending import Departure, Offer, Output, Window
from chains.ton import boc, messages, requests
from chains.ton.cells import CellError
from chains.ton.credits import mark_of
from chains.ton.jettons import Jetton
from chains.ton.messages import Message
from chains.ton.requests import MODE, SignedRequest
from chains.ton.scan.block import departure_id
from chains.ton.slices import Slice
from chains.ton.spends import trace
from chains.ton.transactions import Transaction
from chains.ton.transfers import CoinTransfer, JettonTransfer, transfer_of
from chains.ton.wallet import wallet_id, wallet_state
from core.addresses import ton
from core.catalogue.catalogue import Pair

_SEQNO_BITS = 1 + 32
_WORD = 32
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The coins by which a departure is understood."""

    pairs: tuple[Pair, ...]
    jettons: Mapping[str, Jetton]

    @property
    def native(self) -> Pair | None:
        """Return the pair of the network's own coin."""
        return next((pair for pair in self.pairs if pair.contract is None), None)

    def pair_at(self, wallet: str, sender: str) -> Pair | None:
        """Return the pair whose jettons lie in a sender's jetton wallet; None if it is another's."""
        for pair in self.pairs:
            jetton = self.jettons.get(ton.stored(pair.contract or "") or "")
            if jetton is not None and jetton.wallet(sender) == wallet:
                return pair
        return None


def key_of(data: str) -> bytes:
    """Return the public key in the data of a wallet, in base64. Raises CellError."""
    parts = Slice(boc.read_base64(data))
    parts.uint(_SEQNO_BITS)
    parts.uint(_WORD)
    return parts.raw(_KEY_BYTES)


def is_key_of(key: bytes, address: str, number: int) -> bool:
    """Return True if an address is that of a key's wallet with this number, of a main or of a test network.

    A request names the number, so that one of another network proves nothing here.
    """
    return any(
        (wallet_state(key, is_test=is_test).address, wallet_id(is_test=is_test)) == (address, number)
        for is_test in (False, True)
    )


def read(transaction: Transaction, key: bytes, block: Block, offered: Offered) -> Departure | None:
    """Return a departure in a block; None if its bytes do not prove that the key signed it."""
    try:
        signed = requests.read(transaction.incoming.body)
    except CellError:
        return None
    is_own = is_key_of(key, transaction.address, signed.request.wallet_id)
    return _departure(transaction, signed, block, offered) if is_own and signed.is_signed_by(key) else None


def _departure(transaction: Transaction, signed: SignedRequest, block: Block, offered: Offered) -> Departure:
    request = signed.request
    left = trace.sent(transaction, request.actions)
    moved = [transfer_of(messages.read(action.message)) for action in request.actions]
    known = _of_one_kind(moved, transaction.address, offered)
    is_ours = known is not None and not signed.changes_wallet and not signed.is_internal
    pair, outputs = known or (offered.native, _as_sent(left))
    is_coin = pair is None or pair.contract is None
    gone = sum(message.units for message in left if message is not None) if is_coin else 0
    fee = max(0, -transaction.change - gone)
    return Departure(
        txid=departure_id(transaction),
        sender=transaction.address,
        pair=pair,
        outputs=outputs,
        is_transfer=is_ours and {action.mode for action in request.actions} == {MODE},
        raw=boc.write(transaction.incoming.cell),
        offer=_offer(moved, fee),
        fee_units=fee,
        height=block.height,
        block_hash=block.hash,
        failed=frozenset(place for place, message in enumerate(left) if message is None and known is not None),
        slot=request.seqno,
        window=Window(reference="", ends_at=datetime.fromtimestamp(request.valid_until, UTC)),
        mark=_mark(moved),
    )


def _as_sent(left: Iterable[Message | None]) -> tuple[Output, ...]:
    """Return the coin that messages of an unknown kind bring."""
    return tuple(Output(recipient=each.recipient, units=each.units) for each in left if each is not None)


def _of_one_kind(
    moved: Sequence[CoinTransfer | JettonTransfer | None], sender: str, offered: Offered
) -> tuple[Pair | None, tuple[Output, ...]] | None:
    """Return the coin and the outputs of transfers of one coin; None for any other request."""
    if moved and all(isinstance(each, CoinTransfer) for each in moved):
        return offered.native, _outputs(moved)
    wallets = {each.jetton_wallet for each in moved if isinstance(each, JettonTransfer)}
    if len(wallets) != 1 or not all(isinstance(each, JettonTransfer) for each in moved):
        return None
    pair = offered.pair_at(wallets.pop(), sender)
    return None if pair is None else (pair, _outputs(moved))


def _outputs(moved: Iterable[CoinTransfer | JettonTransfer | None]) -> tuple[Output, ...]:
    return tuple(
        Output(recipient=each.recipient, units=each.units, memo=each.memo) for each in moved if each is not None
    )


def _offer(moved: Sequence[CoinTransfer | JettonTransfer | None], fee: int) -> Offer:
    jetton = next((each for each in moved if isinstance(each, JettonTransfer)), None)
    gas_units, query_id = (0, 0) if jetton is None else (jetton.gas_units, jetton.query_id)
    return Offer(ceiling_units=fee, terms={"gas_units": gas_units, "query_id": query_id})


def _mark(moved: Sequence[CoinTransfer | JettonTransfer | None]) -> str:
    marks = {mark_of(each.query_id) for each in moved if isinstance(each, JettonTransfer)}
    return marks.pop() if len(marks) == 1 else ""
