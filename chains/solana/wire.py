"""Reads the JSON of Solana's nodes: only the fields that we use. Used by the Solana modules.

A block has up to 10 MB, so its shapes hold as little as possible, and numbers are checked while they are decoded.
"""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Annotated, Final, NoReturn

import msgspec
from solders.signature import Signature

from chains.base import COUNT_MAX, Block, ContradictionError, ProviderError
from core.addresses import solana

# A balance or a fee; all SOL there is has far less.
Lamports = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Slot = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)]
# A transaction names fewer accounts.
Place = Annotated[int, msgspec.Meta(ge=0, le=255)]
# The digits of the highest amount that a token account holds.
AMOUNT_DIGITS_MAX: Final = 20
AMOUNT_MAX: Final = 2**64 - 1
# The characters of the longest name, a signature in base 58.
NAME_MAX: Final = 88


class Header(msgspec.Struct, rename="camel"):
    """A block without its transactions."""

    blockhash: str
    previous_blockhash: str
    parent_slot: Slot
    block_time: int | None
    # The number of blocks up to this one.
    block_height: Slot | None


class Key(msgspec.Struct, gc=False):
    """An account of a transaction."""

    pubkey: str
    signer: bool


class Amount(msgspec.Struct, gc=False):
    """An amount of a token, in digits."""

    amount: str


class Holding(msgspec.Struct, rename="camel", gc=False):
    """The balance of a token account. Nodes of old versions name neither owner nor program."""

    account_index: Place
    mint: str
    ui_token_amount: Amount
    owner: str = ""
    program_id: str = ""


class Meta(msgspec.Struct, rename="camel"):
    """The effect of a transaction. Every list is required: a node that keeps no effects shows null."""

    err: object
    fee: Lamports
    pre_balances: list[Lamports]
    post_balances: list[Lamports]
    pre_token_balances: list[Holding]
    post_token_balances: list[Holding]


class Accounts(msgspec.Struct, rename="camel"):
    """A transaction without its instructions. The keys of lookup tables come after its own."""

    signatures: list[str]
    account_keys: list[Key]


class Entry(msgspec.Struct):
    """A transaction of a block, with its effect."""

    transaction: Accounts
    meta: Meta


class FullBlock(Header):
    """A block with its transactions."""

    transactions: list[Entry]


class SignedBlock(Header):
    """A block with the ids of its transactions."""

    signatures: list[str]


class MessageHeader(msgspec.Struct, rename="camel"):
    """The head of a message."""

    num_required_signatures: Place


class Message(msgspec.Struct, rename="camel"):
    """The keys of a message that it names itself; its signers are the first."""

    account_keys: list[str]
    header: MessageHeader


class Signed(msgspec.Struct):
    """A transaction in its parts."""

    signatures: list[str]
    message: Message


class Loaded(msgspec.Struct):
    """The keys that a transaction takes from lookup tables."""

    writable: list[str] = []
    readonly: list[str] = []


class FoundMeta(Meta, rename="camel"):
    """The effect of a transaction that was asked for by its id."""

    loaded_addresses: Loaded | None = None


class Found(msgspec.Struct):
    """A transaction that was asked for by its id, with the slot of its block."""

    slot: Slot
    transaction: Signed
    meta: FoundMeta

    def entry(self) -> Entry:
        """Return it in the form that blocks have."""
        message, loaded = self.transaction.message, self.meta.loaded_addresses or Loaded()
        signers = message.header.num_required_signatures
        keys = [Key(key, place < signers) for place, key in enumerate(message.account_keys)]
        keys += [Key(key, signer=False) for key in (*loaded.writable, *loaded.readonly)]
        return Entry(Accounts(self.transaction.signatures, keys), self.meta)


class Status(msgspec.Struct, rename="camel"):
    """The place of a transaction that was asked for by its id."""

    slot: Slot
    confirmation_status: str | None = None


class Context(msgspec.Struct):
    """The slot that an answer is of."""

    slot: Slot


class Statuses(msgspec.Struct):
    """The places of several transactions; None for one that the node does not know."""

    value: list[Status | None]


class Account(msgspec.Struct):
    """An account. Its data is a text and the name of its encoding."""

    lamports: Lamports
    owner: str
    data: tuple[str, str]


class AccountsAt(msgspec.Struct):
    """Several accounts after one slot; None for one that does not exist."""

    context: Context
    value: list[Account | None]


def block(header: Header, slot: int) -> Block:
    """Return the header of the block in a slot. Its hash proves none of its fields."""
    if header.block_height is None:
        raise ProviderError("a node does not number its blocks")
    if header.parent_slot >= slot:
        raise ContradictionError(f"the parent of block {slot} is block {header.parent_slot}")
    return Block(
        height=slot,
        hash=key(header.blockhash),
        parent_height=header.parent_slot,
        parent_hash=key(header.previous_blockhash),
        time=_moment(header.block_time),
        count=header.block_height,
        is_proved=False,
    )


def key(text: str) -> str:
    """Read 32 bytes: a block's hash, or an address."""
    return solana.stored(text) or _refuse("32 bytes", text)


def check_names(names: Collection[str], what: str) -> None:
    """Raise ContradictionError if any text cannot be an address or an id: the database refuses some texts.

    Cheaper than reading each: a block names some 100,000.
    """
    if names and not ("".join(names).isalnum() and "".join(names).isascii() and max(map(len, names)) <= NAME_MAX):
        _refuse(what, next(name for name in names if not (name.isalnum() and name.isascii() and len(name) <= NAME_MAX)))


def txid(text: str) -> str:
    """Read a transaction's id, which is its first signature."""
    try:
        is_one = str(Signature.from_string(text)) == text
    except ValueError:
        is_one = False
    return text if is_one else _refuse("a signature", text)


def units(amount: Amount) -> int:
    """Read the amount of a token."""
    digits = amount.amount
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= AMOUNT_DIGITS_MAX and int(digits) <= AMOUNT_MAX):
        _refuse("an amount", digits)
    return int(digits)


def _moment(seconds: int | None) -> datetime:
    if seconds is None:
        raise ProviderError("a node keeps no times of blocks")
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        _refuse("a time", str(seconds))


def _refuse(wanted: str, text: str) -> NoReturn:
    raise ContradictionError(f"not {wanted}: {text[:80]!r}")
