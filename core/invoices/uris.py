"""Builds payment links that open a wallet with address and amount filled in. Called by api.pages.

A link asks for one transfer and grants nothing. Sources: BIP-21 (bitcoin), EIP-681 (EVM), the specification of Solana
Pay, and TON's `ton://transfer`. TRON has no standard for tokens, so only its own coin has a link there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import quote, urlencode

from core.catalogue.catalogue import Network, Pair
from core.money import format_coin


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A transfer to ask for. units are the network's own; the address is in its shown form."""

    network: Network
    pair: Pair
    address: str
    units: int

    @property
    def decimal(self) -> str:
        """Return the amount in whole coins."""
        return format_coin(self.units, self.pair.decimals)

    @property
    def is_token(self) -> bool:
        """Return True unless the coin is the network's own."""
        return self.pair.contract is not None


def wallet_uri(request: Request) -> str:
    """Return the link of a transfer; empty if the network's wallets share no form for it."""
    return _FORMS[request.network.family](request)


def code_uri(request: Request) -> str:
    """Return the link to be drawn as a code; empty for tokens whose link names the contract as its target.

    A wallet that reads only the target of such a link would send to the contract for good.
    """
    names_contract = request.is_token and request.network.family in _TARGETS_CONTRACT
    return "" if names_contract else wallet_uri(request)


def _bitcoin(request: Request) -> str:
    return f"bitcoin:{request.address}?amount={request.decimal}"


def _evm(request: Request) -> str:
    chain = request.network.chain_identity
    if not request.is_token:
        return f"ethereum:{request.address}@{chain}?value={request.units}"
    asked = urlencode({"address": request.address, "uint256": request.units})
    return f"ethereum:{request.pair.contract}@{chain}/transfer?{asked}"


def _tron(request: Request) -> str:
    return "" if request.is_token else f"tron:{request.address}?amount={request.decimal}"


def _solana(request: Request) -> str:
    token = f"&spl-token={request.pair.contract}" if request.is_token else ""
    return f"solana:{request.address}?amount={request.decimal}{token}"


def _ton(request: Request) -> str:
    token = f"&jetton={quote(request.pair.contract or '', safe='')}" if request.is_token else ""
    return f"ton://transfer/{request.address}?amount={request.units}{token}"


_TARGETS_CONTRACT: Final = frozenset({"evm"})
_FORMS: Final[Mapping[str, Callable[[Request], str]]] = MappingProxyType(
    {"bitcoin": _bitcoin, "evm": _evm, "tron": _tron, "solana": _solana, "ton": _ton}
)
