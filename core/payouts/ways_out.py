"""Lists the ways by which money leaves a merchant: who signs, and what freezes, revoked keys and debts do.

The guards read the debt and the signatures here (models.payouts.freezes, actors.refunds.orders). tests/api walks the
table through the API, and finds each route that changes something in it or in MOVES_NOTHING_OUT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from core.payouts.states import PayoutKind

# Where a merchant requires co-signing.
# each: every payout waits for another principal. twice: another principal sends the same rule.
# approval: every payout waits for another principal in any shop, and here for two. one: a single key does it.
Cosign = Literal["each", "twice", "approval", "one"]
# refused: payout.frozen, and what is approved already waits. waits: the rule is taken, and nothing leaves by it.
Freeze = Literal["refused", "waits", "goes on"]
# cancelled: an unsigned payout returns to the balance. ends: the rule moves nothing more, and shares that wait for
# their hold return. stays: it was done at once, or nothing was ordered.
Revocation = Literal["cancelled", "ends", "stays"]
# The same for the key that gave the second voice: that co-signed the rule, or approved the payout. none: no way has it.
SecondVoice = Literal["cancelled", "ends", "none"]
# Which debts of the merchant stop it, as a freeze does.
Debt = Literal["any coin", "own coin", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way out. title: as the documentation names it. routes: those that order it, or what moves it on."""

    title: str
    routes: tuple[str, ...]
    cosign: Cosign
    freeze: Freeze
    revocation: Revocation
    cosigner_revoked: SecondVoice
    debt: Debt


_ORDER: Final = "each", "refused", "cancelled", "cancelled", "any coin"
_BY_PAYMENT: Final = ("/v1/payment/refund", "/v1/refund/batch", "/v1/payment/resolve")


def _way(
    title: str, routes: tuple[str, ...], does: tuple[Cosign, Freeze, Revocation, SecondVoice, Debt] = _ORDER
) -> Way:
    cosign, freeze, revocation, second, debt = does
    return Way(
        title=title, routes=routes, cosign=cosign, freeze=freeze, revocation=revocation, cosigner_revoked=second,
        debt=debt,
    )  # fmt: skip


PAYOUT: Final = _way("Payout", ("/v1/payout", "/v1/payout/mass", "/v1/payout/batch"))
CHEQUE: Final = _way("Cheque", ("/v1/payout/link", "/v1/payout/link/batch", "/v1/claim/{token}"))
# The buyer did not make the debt; that in the same coin is one of the very money.
TO_PAYER: Final = _way("Refund to the payer", _BY_PAYMENT, ("each", "refused", "cancelled", "cancelled", "own coin"))
ELSEWHERE: Final = _way(
    "Refund to another address", _BY_PAYMENT, ("approval", "refused", "cancelled", "cancelled", "any coin")
)
BLOCKED_WALLET: Final = _way("Refund of a blocked wallet", ("/v1/wallet/blocked-address-refund",))
SPLIT: Final = _way("Split rule", ("/v1/split/rule",), ("twice", "waits", "ends", "ends", "any coin"))
WITHDRAWAL: Final = _way(
    "Automatic withdrawal", ("/v1/auto-withdraw",), ("twice", "waits", "cancelled", "cancelled", "any coin")
)
TRANSFER: Final = _way(
    "Transfer to the personal wallet", ("/v1/transfer/to-personal",), ("one", "refused", "stays", "none", "any coin")
)
APPROVAL: Final = _way(
    "Approval of a payout", ("/v1/payout/approve",), ("one", "refused", "cancelled", "none", "any coin")
)
# They move no coin, but decide who can; models.merchants.notices notifies the owner.
SPLIT_SETTINGS: Final = _way("Split settings", ("/v1/split/config/set",), ("one", "goes on", "stays", "none", "none"))
ALLOWLIST: Final = _way("IP allowlist", ("/v1/ip-allowlist",), ("one", "goes on", "stays", "none", "none"))
WEBHOOK: Final = _way("Webhook endpoint", ("/v1/webhooks",), ("one", "goes on", "stays", "none", "none"))

WAYS: Final = (
    PAYOUT, CHEQUE, TO_PAYER, ELSEWHERE, BLOCKED_WALLET, SPLIT, WITHDRAWAL, TRANSFER, APPROVAL, SPLIT_SETTINGS,
    ALLOWLIST, WEBHOOK,
)  # fmt: skip

_BY_KIND: Final[dict[PayoutKind, Way]] = {
    "payout": PAYOUT,
    "cheque": CHEQUE,
    "refund": TO_PAYER,
    "resolve": TO_PAYER,
    "stray": TO_PAYER,
    "wallet_refund": BLOCKED_WALLET,
    "autowithdraw": WITHDRAWAL,
}
TO_PAYER_KINDS: Final = tuple(kind for kind, way in _BY_KIND.items() if way is TO_PAYER)


def of(kind: PayoutKind, *, is_elsewhere: bool) -> Way:
    """Return the way that a payout takes. is_elsewhere: a refund to an address that is not the payer's."""
    way = _BY_KIND[kind]
    return ELSEWHERE if way is TO_PAYER and is_elsewhere else way
