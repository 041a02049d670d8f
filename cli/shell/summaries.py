"""Keeps the first line of each command's help: the list of commands need load none of them. Called by cli.__main__."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# A command that is missing here is loaded for its line.
SUMMARIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "migrate": "Apply pending migrations; several machines may do so at once.",
        "merchant": "Merchants and their owners.",
        "key": "API keys of merchants.",
        "completion": "Print a shell's completion of this command, for the shell to evaluate.",
        "secrets": "The keys in SECRET_KEYS.",
        "wallet": "The gateway's root secret.",
        "payment": "Payments of all merchants.",
        "payout": "Payouts of all merchants, to read; `sluice payouts` acts on them.",
        "webhook": "Deliveries of webhooks.",
        "rates": "Show each currency's rate in US dollars, its age and its source; a stale one prices nothing.",
        "queues": "Show each queue: its messages, the age of the oldest, its processes.",
        "acts": "List operators' acts, newest first: who did what, when and why.",
        "audit": "Check every invariant of the stored data in one snapshot, and show the last comparisons with the"
        " chain.",
        "doctor": "Check settings, stores, providers, keystore and address pool.",
        "rescan": "Read blocks again and record missed deposits.",
        "scan": "How far each network is scanned, and moving a halted scan back.",
        "treasury": "The gateway's own wallets: balances, sweeps, surplus.",
        "payouts": "Freezing payouts, who is frozen, cancelling one, and what an operator has to end.",
        "fees": "The gateway's own coin: collected fees, and taking them out.",
        "dev": "The whole gateway on this machine, and commands that use it.",
        "demo": "Run the whole gateway and pay an invoice with a real transaction; then stay up, until Ctrl-C.",
        "clock": "The gateway's clock (development only).",
    }
)
