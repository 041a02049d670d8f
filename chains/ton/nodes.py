"""Asks TON's nodes through toncenter's interface, second version, and builds a network's providers that are asked so.

Questions are JSON-RPC with named parameters. An answer says `ok` or not; an error is a text, and comes with an HTTP
status of its own. A block of the masterchain is final. Its shards name the blocks that it adds.
"""

import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from chains.base import Block, ContradictionError, NotYetError, ProviderError, readable
from chains.net.http import HttpNode, RefusedError, TooMuchError, TooSlowError
from chains.net.json_rpc import UNREADABLE
from chains.net.node import Dialect
from chains.net.providers import Providers
from chains.ton import wire
from core.catalogue.catalogue import Network

T = TypeVar("T")

# The statuses with which answers and refusals in words come.
ANSWERS: Final = frozenset({200, 404, 409, 422, 500, 503, 504, 542})
# Parts of the texts with which a node without a block, or a transaction, says so. They differ by its version.
LACKED: Final = (
    "lite_server_notready",
    "not in db",
    "block not found",
    "cannot find block",
    "cannot load block",
    "not applied",
    "cannot locate transaction",
)
# The number by which nodes of the chain say the same.
NOT_READY: Final = 651
# Parts of the texts of a node that has no connection to the chain.
UNREACHABLE: Final = ("lite_server_network", "timeout", "not synced", "no working liteserver", "adnl")
# A node's refusal of an external message names the contract's exit code after some 250 characters.
FAULT_TEXT_MAX: Final = 500
# Transactions of one answer.
PAGE: Final = 256
HISTORY_PAGE: Final = 100
# One transaction may send 255 messages of 2^21 bits, whose bodies an answer repeats: 92 MB in base64.
SINGLE_BYTES_MAX: Final = 128 * 1024 * 1024
# The accounts and blocks of which it is kept how many transactions fit into an answer.
FITTING_MAX: Final = 256


class ToncenterError(RefusedError):
    """The node refused a question in words."""

    def __init__(self, method: str, code: int, text: str) -> None:
        self.code = code
        self.text = readable(text, chars=FAULT_TEXT_MAX)
        super().__init__(f"{method}: {self.text} ({code})")


class LackedError(ToncenterError):
    """The node lacks a block or a transaction, which the chain may have."""


class _Request(msgspec.Struct, kw_only=True):
    jsonrpc: str = "2.0"
    id: int
    method: str
    params: dict[str, object]


class _Reply(msgspec.Struct):
    ok: bool
    id: int | str | None = None
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: str = ""
    code: int = 0


class Toncenter:
    """One node. Safe to share between threads."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        """Take a URL. Raises ValueError."""
        self._http = HttpNode(url, timeout_s=timeout_s, answers=ANSWERS)
        self._ids = itertools.count(1)
        self._fitting = OrderedDict[str, int]()

    def page(self, place: str, most: int, ask: Callable[[int, int], T]) -> T:
        """Return a page of at most this many transactions, and of fewer where their answer would be too long.

        place: names the account or the block. ask: asks for some transactions, in an answer of at most some bytes, or
        of the usual length for 0. The number that fits is kept, so that the next step goes on from there.
        """
        while True:
            count = min(most, self._fitting.get(place, most))
            try:
                answer = ask(count, 0 if count > 1 else SINGLE_BYTES_MAX)
            except (TooMuchError, TooSlowError) as error:
                self._fit(place, max(1, count // 2))
                if isinstance(error, TooSlowError):
                    raise
                if count == 1:
                    raise TooMuchError(f"{error}: one transaction of {place}") from None
            else:
                if self._fitting.pop(place, most) < most:
                    self._fit(place, 2 * count)
                return answer

    def ask(self, method: str, kind: type[T], bytes_max: int = 0, /, **asked: object) -> T:
        """Return an answer of the given type. Raises ToncenterError if refused, LackedError, or ProviderError.

        asked: the named parameters, without those of no value. bytes_max: another bound of the answer than the usual.
        """
        named = {name: value for name, value in asked.items() if value is not None}
        request = _Request(id=next(self._ids), method=method, params=named)
        reply = _decode(method, self._http.post(method, msgspec.json.encode(request), bytes_max=bytes_max), _Reply)
        if not reply.ok:
            raise self._refusal(method, reply)
        # A proxy that mixes up answers could pass one block's transactions for another's.
        if reply.id not in {request.id, str(request.id)} or reply.result is msgspec.UNSET:
            raise ProviderError(f"{method}: not an answer to this request")
        return _decode(method, reply.result, kind)

    def _fit(self, place: str, count: int) -> None:
        self._fitting[place] = count
        while len(self._fitting) > FITTING_MAX:
            self._fitting.popitem(last=False)

    def _refusal(self, method: str, reply: _Reply) -> ProviderError:
        text = self._http.scrub(reply.error)
        lowered = text.lower()
        if any(words in lowered for words in UNREACHABLE):
            return ProviderError(f"{method}: {readable(text, chars=FAULT_TEXT_MAX)}")
        is_lacked = reply.code == NOT_READY or any(words in lowered for words in LACKED)
        return (LackedError if is_lacked else ToncenterError)(method, reply.code, text)


def head(node: Toncenter) -> int:
    """Return the newest block of the masterchain."""
    return _info(node).last.seqno


def header(node: Toncenter, seqno: int) -> Block:
    """Return the header of a block of the masterchain. Raises NotYetError, and LackedError if the node has pruned it.

    Only a node whose head is above the block can have pruned it.
    """
    try:
        shown = node.ask("getBlockHeader", wire.Header, workchain=wire.MASTERCHAIN, shard=wire.WHOLE, seqno=seqno)
    except LackedError:
        if head(node) > seqno:
            raise
        raise NotYetError(f"master block {seqno} is not there yet") from None
    return wire.block(shown, seqno)


def shard_header(node: Toncenter, identity: wire.BlockId) -> wire.Header:
    """Return the header of a shard's block. Raises LackedError."""
    shown = node.ask("getBlockHeader", wire.Header, **_named(identity))
    if shown.id != identity:
        raise ContradictionError(f"another header than of block {identity.seqno} of shard {identity.shard}")
    return shown


def shards(node: Toncenter, seqno: int) -> Sequence[wire.BlockId]:
    """Return the newest block of each shard that a block of the masterchain names. Raises LackedError."""
    return node.ask("shards", wire.Shards, seqno=seqno).shards


def tops(node: Toncenter, seqno: int) -> tuple[wire.BlockId, ...]:
    """Return the newest block of each shard of the basechain, as a block of the masterchain names them.

    Raises LackedError, and ContradictionError unless they cover each account exactly once.
    """
    return wire.covering_all(shards(node, seqno))


def page(node: Toncenter, identity: wire.BlockId, *, after: tuple[str, int] | None = None) -> wire.Page:
    """Return some transactions of a shard's block, after one of an account's logical time. Raises LackedError.

    after: an account, without its workchain in hexadecimal, and the logical time.
    """
    account, lt = (None, None) if after is None else (wire.base64_of(after[0]), str(after[1]))

    def ask(count: int, bytes_max: int) -> wire.Page:
        named = _named(identity) | {"count": count, "after_hash": account, "after_lt": lt}
        return node.ask("getBlockTransactionsExt", wire.Page, bytes_max, **named)

    shown = node.page(f"block {identity.seqno} of shard {identity.shard} ({identity.root_hash})", PAGE, ask)
    if shown.id != identity:
        raise ContradictionError(f"transactions of another block than {identity.seqno} of shard {identity.shard}")
    return shown


def account(node: Toncenter, address: str, *, seqno: int | None = None) -> wire.Account:
    """Return an account after the newest block of the masterchain, or after an older one. Raises LackedError."""
    shown = node.ask("getAddressInformation", wire.Account, address=address, seqno=seqno)
    if shown.block_id.workchain != wire.MASTERCHAIN or seqno not in {None, shown.block_id.seqno}:
        raise ContradictionError(f"an account after another block than master block {seqno}")
    return shown


def history(
    node: Toncenter, address: str, *, first: wire.TransactionId | None = None, to_lt: int = 0, limit: int = 0
) -> Sequence[wire.Entry]:
    """Return an account's transactions, the newest first, from one on and down to a logical time, itself excluded.

    limit: their number at most; a page of them for 0. Raises LackedError if the node has pruned the first.
    """
    lt, hashed = (None, None) if first is None else (first.lt, first.hash)

    def ask(count: int, bytes_max: int) -> list[wire.Entry]:
        named = {"address": address, "lt": lt, "hash": hashed, "to_lt": str(to_lt), "limit": count}
        return node.ask("getTransactions", list[wire.Entry], bytes_max, **named)

    return node.page(address, limit or HISTORY_PAGE, ask)


def config(node: Toncenter) -> str:
    """Return the settings of the chain after its newest block, as cells in base64."""
    return node.ask("getConfigAll", wire.ConfigInfo).config.bytes


def _named(identity: wire.BlockId) -> dict[str, object]:
    """Return a block's id as parameters. The hashes have a node that has another block refuse the question."""
    return {
        "workchain": identity.workchain,
        "shard": identity.shard,
        "seqno": identity.seqno,
        "root_hash": identity.root_hash,
        "file_hash": identity.file_hash,
    }


def _info(node: Toncenter) -> wire.MasterchainInfo:
    shown = node.ask("getMasterchainInfo", wire.MasterchainInfo)
    if shown.last.workchain != wire.MASTERCHAIN:
        raise ContradictionError("a head that is no block of the masterchain")
    return shown


def _identity(node: Toncenter) -> str:
    return _info(node).init.root_hash


def _open(url: str, timeout_s: float) -> Toncenter:
    return Toncenter(url, timeout_s=timeout_s)


def _decode(method: str, body: bytes | msgspec.Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except UNREADABLE as error:
        raise ProviderError(f"{method}: not the shape it should have: {error}") from None


DIALECT: Final = Dialect(open=_open, identify=_identity, head=head)


def ton_providers(network: Network, urls: Sequence[str], *, timeout_s: float) -> Providers[Toncenter]:
    """Return the providers of a TON network, which are believed once they name the state from which it began."""
    return Providers(network, urls, DIALECT, identity=network.chain_identity, timeout_s=timeout_s)
