"""Names the way out of each finding of `sluice doctor`. Called by cli.doctor."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_FIXES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "settings": "correct the variable; docs/settings.md describes it",
        "postgresql": "upgrade PostgreSQL to 14 or newer, and see that DATABASE_URL reaches it",
        "durability": "set fsync and synchronous_commit to on in PostgreSQL",
        "clock": "let both machines follow NTP",
        "tables": "run `sluice migrate`",
        "migrations": "run `sluice migrate`",
        "app clock": "give production a database whose clock was never moved",
        "payouts to settle": "look at `sluice payouts unsettled`, then `sluice payouts settle`",
        "signing": "look at `sluice treasury recover NETWORK`",
        "block times": "let PostgreSQL's machine follow NTP; if it does, ask the providers",
        "deny list": "correct the file that DENY_LIST names",
        "redis": "upgrade Redis to 6.2 or newer, and see that REDIS_URL reaches it",
        "redis memory": "set maxmemory-policy to noeviction in Redis",
        "redis TLS": "give Redis a certificate that can be verified, and unset REDIS_TLS",
        "running": "start Redis and the processes of the Procfile, then look again",
        "providers": "correct or add addresses in <NETWORK>_RPC_URLS, of two companies at least",
        "keystore": "give the signer the keystore to which ADDRESS_PUBLIC_KEY belongs; see `sluice wallet verify`",
        "writes": "free space, or point DATABASE_URL at the primary",
        "connections": "raise max_connections, or lower WEB_THREADS and the workers' threads",
        "schema": "run `sluice migrate`, or the newer version of the gateway",
        "queues": "start the queue's process of the Procfile; `sluice queues` shows them",
        "scheduler": "start the Procfile's scheduler",
        "signer": "read its reason above, correct the signer's settings, start it again",
        "rates": "see that the rates' sources can be reached; `sluice rates` shows their age",
        "scans": "look at `sluice scan show`; a halted scan goes on after `sluice scan rewind`",
        "books": "look at `sluice treasury status`, and at `sluice audit`",
        "audit": "run `sluice audit`, and see that the maintenance process runs",
        "emails": "see that SMTP_URL can be reached, and that the emails process runs",
        "proxies": "set TRUSTED_PROXIES to the addresses of your proxies",
        "signer rates": "bring SIGNER_RATES and SIGNER_RATES_AT up to date",
        "roles": "let a superuser run `sluice migrate` once, or give its login CREATEROLE",
        "rights": "give each process a login of its own role; see Logins of PostgreSQL in docs/operations.md",
        "payouts": "look at `sluice payouts frozen`; `sluice payouts unfreeze` lifts a freeze",
        "address pool": "start the signer, which fills the pool",
    }
)
# Of checks whose name begins with a network's.
_LAST_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "methods": "ask the provider for these methods, or take another one",
        "providers": "take nodes of two companies, or run one of your own",
    }
)
_PROVIDER: Final = "correct this address in <NETWORK>_RPC_URLS, or take another provider"


def fix_of(check: str) -> str:
    """Return the way out of a warning or failure. Raises LookupError for an unknown check."""
    if check in _FIXES:
        return _FIXES[check]
    words = check.split()
    if words[-1] in _LAST_WORDS:
        return _LAST_WORDS[words[-1]]
    if "provider" in words:
        return _PROVIDER
    raise LookupError(f"no remedy is known for {check}")
