"""Reads the states of accounts that a spend concerns: our wallet and jetton wallets. Used by trial and fate."""

from dataclasses import dataclass
from typing import Final, Literal

from chains.base import ProviderError
from chains.ton import boc, wire
from chains.ton.cells import Cell
from chains.ton.jettons import Jetton
from chains.ton.slices import Slice
from chains.ton.wallet import CODE

Status = Literal["active", "uninitialized", "frozen"]

_STATUSES: Final[dict[str, Status]] = {"active": "active", "uninitialized": "uninitialized", "frozen": "frozen"}
_WORD: Final = 32
_STATUS_BITS: Final = 4
# An issuer's marks on a wallet of jettons: nothing leaves, and nothing comes.
LEAVES_NOT: Final = 1
COMES_NOT: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class WalletState:
    """The data of one of our wallets. is_foreign: whether others than its key may send for it.

    is_frozen: whether the chain took its contract away, for the rent that it owed.
    """

    seqno: int = 0
    is_foreign: bool = False
    is_frozen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """An owner's jettons, and the issuer's marks on them."""

    units: int
    marks: int


def status_of(account: wire.Account) -> Status:
    """Return an account's status. Raises ProviderError for another than the chain has."""
    status = _STATUSES.get(account.state)
    if status is None:
        raise ProviderError(f"no account is {account.state[:20]!r}")
    return status


def parts_of(account: wire.Account) -> tuple[Cell, ...]:
    """Return an account's code and data; empty without a contract."""
    return tuple(boc.read_base64(text) for text in (account.code, account.data) if text)


def wallet_of(account: wire.Account) -> WalletState:
    """Return the state of one of our wallets; without its contract, no request was made."""
    status = status_of(account)
    if status != "active":
        return WalletState(is_frozen=status == "frozen")
    code, data = _contract(account)
    if code != CODE:
        return WalletState(is_foreign=True)
    parts = Slice(data)
    by_signature, seqno = parts.bit(), parts.uint(_WORD)
    # The wallet's number and its key never change; behind them are the contracts that may send for it.
    parts.uint(_WORD)
    parts.raw(32)
    return WalletState(seqno=seqno, is_foreign=not by_signature or parts.bit())


def seqno_of(account: wire.Account) -> int:
    """Return the number of one of our wallets' next request. Raises ProviderError if its contract is not ours."""
    state = wallet_of(account)
    if state.is_frozen or (state.is_foreign and not state.seqno):
        raise ProviderError("a wallet that is frozen, or has another code than ours, counts no requests")
    return state.seqno


def holding_of(account: wire.Account, jetton: Jetton) -> Holding:
    """Return the contents of a jetton wallet. Raises ProviderError if another contract is at its address."""
    status = status_of(account)
    if status == "uninitialized":
        return Holding(units=0, marks=0)
    if status == "frozen":
        raise ProviderError("a jetton wallet is frozen for its debts")
    code, data = _contract(account)
    if code != jetton.wallet_code:
        raise ProviderError("a jetton wallet has another code than the jetton's")
    parts = Slice(data)
    marks = parts.uint(_STATUS_BITS) if jetton.form == "governed" else 0
    return Holding(units=parts.coins(), marks=marks)


def _contract(account: wire.Account) -> tuple[Cell, Cell]:
    if not account.code or not account.data:
        raise ProviderError("a contract without code or data")
    return boc.read_base64(account.code), boc.read_base64(account.data)
