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
from chains.ton.cells import Cell, CellError
from chains.ton.credits import coin_credit, mark_of
from chains.ton.jettons import Jetton
from chains.ton.messages import Message
from chains.ton.requests import MODE, Request, SignedRequest
from chains.ton.scan.block import departure_id
from chains.ton.slices import Slice
from chains.ton.spends import trace
from chains.ton.transactions import Transaction
from chains.ton.transfers import TRANSFER, CoinTransfer, JettonTransfer, transfer_of
from chains.ton.wallet import wallet_id, wallet_state
from core.addresses import ton
from core.catalogue.catalogue import Pair

Transfer = CoinTransfer | JettonTransfer
# The pair, the outputs, and the places of those that had no effect.
Moves = tuple[Pair | None, tuple[Output, ...], frozenset[int]]

_SEQNO_BITS = 1 + 32
_WORD = 32
_QUERY_BITS = 64
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
    moved = [_moved(action.message) for action in request.actions]
    is_plain = not signed.changes_wallet and not signed.is_internal
    known = _in_our_form(transaction, request, moved, offered) if is_plain else None
    pair, outputs, failed = known or _as_sent(transaction, offered)
    is_coin = pair is None or pair.contract is None
    gone = sum(message.units for message in transaction.outgoing) if is_coin else 0
    fee = max(0, _credited(transaction, offered) - transaction.change - gone)
    return Departure(
        txid=departure_id(transaction),
        sender=transaction.address,
        pair=pair,
        outputs=outputs,
        is_transfer=known is not None,
        raw=boc.write(transaction.incoming.cell),
        offer=_offer(moved, fee),
        fee_units=fee,
        height=block.height,
        block_hash=block.hash,
        failed=failed,
        slot=request.seqno,
        window=Window(reference="", ends_at=datetime.fromtimestamp(request.valid_until, UTC)),
        mark=_mark(moved),
    )


def _moved(message: Cell) -> Transfer | None:
    """Return the transfer that a message asks for; None for any other, and for one that no wallet can send."""
    try:
        return transfer_of(messages.read(message))
    except CellError:
        return None


def _credited(transaction: Transaction, offered: Offered) -> int:
    """Return the coin that came along as a payment."""
    credit = None if offered.native is None else coin_credit(transaction, [*offered.jettons.values()])
    return 0 if credit is None else credit.units


def _in_our_form(
    transaction: Transaction, request: Request, moved: Sequence[Transfer | None], offered: Offered
) -> Moves | None:
    """Return the outputs of a request in the form of our own: transfers of one coin alone. None for any other."""
    if not moved or any(action.mode != MODE for action in request.actions):
        return None
    transfers = [each for each in moved if each is not None]
    # '' for coin.
    wallets = {each.jetton_wallet if isinstance(each, JettonTransfer) else "" for each in transfers}
    if len(transfers) < len(moved) or len(wallets) > 1:
        return None
    wallet = wallets.pop()
    pair = offered.pair_at(wallet, transaction.address) if wallet else offered.native
    if wallet and pair is None:
        return None
    left = trace.sent(transaction, request.actions)
    return pair, _outputs(transfers), frozenset(place for place, each in enumerate(left) if each is None)


def _as_sent(transaction: Transaction, offered: Offered) -> Moves:
    """Return the jettons for which a message left, in whatever form; without any, the coin of all messages.

    The coin that leaves besides jettons counts as their fee.
    """
    left = [each for each in transaction.outgoing if each.kind == "internal"]
    asked = [each for message in left if (each := _asked(message, transaction.address, offered)) is not None]
    if asked:
        pair = asked[0][0]
        return pair, tuple(output for its, output in asked if its == pair), frozenset()
    return offered.native, tuple(Output(recipient=each.recipient, units=each.units) for each in left), frozenset()


def _asked(message: Message, sender: str, offered: Offered) -> tuple[Pair, Output] | None:
    """Return the jettons that a message asks the sender's jetton wallet to move; None if it asks for anything else."""
    pair = offered.pair_at(message.recipient, sender)
    try:
        parts = Slice(message.body)
        if pair is None or parts.uint(_WORD) != TRANSFER:
            return None
        parts.uint(_QUERY_BITS)
        units, recipient = parts.coins(), parts.address()
    except CellError:
        return None
    return (pair, Output(recipient=recipient, units=units)) if recipient else None


def _outputs(transfers: Iterable[Transfer]) -> tuple[Output, ...]:
    return tuple(Output(recipient=each.recipient, units=each.units, memo=each.memo) for each in transfers)


def _offer(moved: Sequence[Transfer | None], fee: int) -> Offer:
    jetton = next((each for each in moved if isinstance(each, JettonTransfer)), None)
    gas_units, query_id = (0, 0) if jetton is None else (jetton.gas_units, jetton.query_id)
    return Offer(ceiling_units=fee, terms={"gas_units": gas_units, "query_id": query_id})


def _mark(moved: Sequence[Transfer | None]) -> str:
    marks = {mark_of(each.query_id) for each in moved if isinstance(each, JettonTransfer)}
    return marks.pop() if len(marks) == 1 else ""
