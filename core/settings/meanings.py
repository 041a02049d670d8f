"""Explains each variable: its meaning, and the kinds of process that read it. Read by core.settings.names.

`make settings` writes docs/settings.md and .env.example from this table and from Settings. <NETWORK> and <SOURCE> are
replaced by the code of a network or of a source of rates, in capitals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from core.settings.rules import Role

ALL: Final[tuple[Role, ...]] = ("web", "worker", "signer", "scheduler", "cli")
ACTORS: Final[tuple[Role, ...]] = ("worker", "signer", "cli")
WEB: Final[tuple[Role, ...]] = ("web",)
WORKER: Final[tuple[Role, ...]] = ("worker",)
SIGNER: Final[tuple[Role, ...]] = ("signer",)
CALLS: Final[tuple[Role, ...]] = ("web", "worker")
MONEY: Final[tuple[Role, ...]] = ("worker", "signer")


class Meaning(NamedTuple):
    """The sentence that explains a variable, and the processes that read it."""

    text: str
    roles: tuple[Role, ...]


STORES: Final = {
    "ENVIRONMENT": Meaning("The rules that apply. Without it those of production do.", ALL),
    "DATABASE_URL": Meaning("PostgreSQL, as `postgresql://user:password@host/name`. A login for each process.", ALL),
    "REDIS_URL": Meaning("Redis, as `redis://:password@host:6379/0`, `rediss://…` or `unix://…`.", ALL),
    "REDIS_TLS": Meaning(
        "The check of a `rediss://` server's certificate: `verify`, `ca:/path` of the authority's, or `unverified`.",
        ALL,
    ),
    "REDIS_NAMESPACE": Meaning("The prefix of all keys in Redis, for several gateways on one.", ALL),
    "SECRET_KEYS": Meaning(
        "`kid:base64key,…`: the first key seals, all open. `sluice secrets new` prints an entry.", ALL
    ),
    "LOG_LEVEL": Meaning("The least level of a log line.", ALL),
    "LOG_FORMAT": Meaning("One JSON object a line, or text for a terminal.", ALL),
    "SENTRY_DSN": Meaning(
        "Where errors that are logged are sent as well, redacted; needs `pip install 'sluice[sentry]'`.", ALL
    ),
}
ADDRESSES: Final = {
    "BASE_URL": Meaning("The address at which merchants call the API.", ALL),
    "PAY_URL": Meaning("The address of the hosted pages.", ALL),
    "BIND": Meaning("Where the API listens: an address like `127.0.0.1`, with `PORT`, or `unix:/path`.", WEB),
    "PORT": Meaning("The port on which the API listens.", WEB),
    "TRUSTED_PROXIES": Meaning(
        "Addresses and networks of the proxies before the API, as `10.0.0.0/8,…`; their `X-Forwarded-For` is believed.",
        WEB,
    ),
    "METRICS_TOKEN": Meaning("The token of clients of `/metrics`; production without it has no such page.", WEB),
    "DEVELOPMENT_DESK_URL": Meaning("Where a development stack pays for a page; production refuses it.", WEB),
}
KEYS: Final = {
    "ADDRESS_PUBLIC_KEY": Meaning(
        "The key that verifies deposit addresses, as `sluice wallet init` prints it. Workers require it.", ACTORS
    ),
    "WALLET_KEYSTORE": Meaning("The encrypted keystore's file. The signer needs this or the next one.", SIGNER),
    "WALLET_KEYSTORE_DATA": Meaning("The keystore's content, for platforms without files.", SIGNER),
    "WALLET_PASSPHRASE_FILE": Meaning("The file of its passphrase. The signer needs this or the next one.", SIGNER),
    "WALLET_PASSPHRASE": Meaning("The keystore's passphrase.", SIGNER),
    "WALLET_MNEMONIC": Meaning("The words themselves, for development; production refuses it.", SIGNER),
}
PROVIDERS: Final = {
    "<NETWORK>_RPC_URLS": Meaning(
        "Up to eight providers of a network, the preferred one first. A network without providers is not served.", ALL
    ),
    "SINGLE_PROVIDER_OK": Meaning("Production serves a network with one provider alone only if this is set.", ALL),
    "RPC_TIMEOUT_S": Meaning("The longest time of one request.", ACTORS),
    "RPC_STEP_S": Meaning("The longest time of one step of a network.", ACTORS),
    "RPC_STEP_REQUESTS": Meaning("The most requests of one step of a network.", ACTORS),
    "QUORUM_USD": Meaning("A deposit or payout of this worth or more needs two providers that agree.", MONEY),
    "QUORUM_HOURLY_USD": Meaning("The sum of smaller deposits that a network books in an hour without that.", WORKER),
    "RESCAN_S": Meaning("How far the second reading of a chain may fall behind; 0 switches it off.", WORKER),
    "<NETWORK>_GAS_CAP_GWEI": Meaning("The most that the signer offers for a unit of gas.", ACTORS),
    "<NETWORK>_FEE_CAP": Meaning(
        "The most that the signer pays, in the unit of the network's family, as docs/operations.md explains.",
        ACTORS,
    ),
    "<NETWORK>_JOIN_SAT_VB": Meaning(
        "Small coins are joined while the network asks for at most this many satoshi a virtual byte; 0 for never.",
        SIGNER,
    ),
    "<NETWORK>_CONFIRMATIONS": Meaning(
        "The confirmations from which deposits and payouts count, from the catalogue's up to its maturity, at most 256."
        " Give every process the same.",
        ALL,
    ),
    "<NETWORK>_EXPLORER_URL": Meaning(
        "A transaction's page, with `{txid}` in it, to which hosted pages link; `none` for no link.", WEB
    ),
    "<NETWORK>_SANCTIONS_ORACLE": Meaning(
        "A contract with `isSanctioned(address)`, asked before a payout leaves.", MONEY
    ),
}
RATES: Final = {
    "RATES_SOURCE": Meaning("Live rates, or invented ones, which production refuses.", WORKER),
    "RATES_<SOURCE>_URL": Meaning(
        "The address of a source, for a key or a mirror of one's own; `off` switches it off.", WORKER
    ),
    "RATES_SOURCES_MIN": Meaning("A coin has a rate while this many sources agree on it.", WORKER),
    "CONVERSION_SPREAD_PPM": Meaning("How far a conversion's rate is below the market's, in millionths.", WORKER),
    "GAS_RESERVE_TRANSFERS": Meaning(
        "Coin for this many transfers of each network is kept for gas, and never sold in conversions.", WORKER
    ),
}
PAYMENTS: Final = {
    "FEE_PERCENT": Meaning("The fee of merchants without a fee of their own, in percent of the credit.", CALLS),
    "FEE_FIXED_USD": Meaning("The fixed part of that fee, in US dollars for a payment.", CALLS),
    "INVOICE_LIFETIME_S": Meaning("How long a payment lives whose request names no lifetime.", CALLS),
    "QUOTE_LIFETIME_S": Meaning("How long a quote holds; a payment keeps the value of its creation.", CALLS),
    "ACCURACY_PERCENT": Meaning(
        "The tolerance, 0 or 1 to 5 percent, of merchants that never set their own. 0 for none.", CALLS
    ),
    "PRICE_MAX_USD": Meaning("The largest price of a payment.", CALLS),
    "PAYMENT_LINKS_ENABLED": Meaning("0: payment links are neither made nor shown nor checked out.", CALLS),
    "PAYMENT_LINK_UNPAID_MAX": Meaning("Payments of one link that may wait for their buyers at a time.", WORKER),
    "BATCHES_ENABLED": Meaning("0: new batches are refused; accepted ones are carried out.", WORKER),
    "BATCH_OPEN_ITEMS_MERCHANT_MAX": Meaning("Uncompleted batch items of one merchant.", WORKER),
    "BATCH_OPEN_ITEMS_MAX": Meaning("Uncompleted batch items of all merchants.", WORKER),
    "WEBHOOK_ALLOW_PRIVATE": Meaning("Webhooks may go to private addresses; production refuses it.", WORKER),
}
PAYOUTS: Final = {
    "SIGNER_PAYOUT_MAX_USD": Meaning(
        "The most that one payout may be worth. Workers refuse larger orders: give both the same.", MONEY
    ),
    "SIGNER_HOURLY_USD": Meaning("The most that leaves in an hour, on all networks together.", MONEY),
    "SIGNER_DAILY_USD": Meaning("The most that leaves in a day.", MONEY),
    "SIGNER_MERCHANT_PERCENT": Meaning("The part of both that one merchant may use up.", SIGNER),
    "SIGNER_RATES": Meaning(
        "`ETH:2500,BNB:600`: the least worth of a coin by which the signer counts its limits; production's signer needs"
        " one for each coin that is not redeemed for dollars.",
        ACTORS,
    ),
    "SIGNER_RATES_AT": Meaning("`2026-11-01`: the day on which an operator last checked them.", ("cli",)),
    "PAYOUT_FEE_MAX_PERCENT": Meaning(
        "A payout older than its fee quote waits while the network's fee is above this percentage of its charge.",
        SIGNER,
    ),
    "PAYOUT_FEE_CARRIED_USD": Meaning("The most that the gateway adds in a day to such fees of one merchant.", SIGNER),
    "PAYOUT_LINKS_ENABLED": Meaning("0: no cheque is issued.", WORKER),
    "DENY_LIST": Meaning("A file of addresses to which nothing is sent, one a line.", ACTORS),
}
TREASURY: Final = {
    "<NETWORK>_COLD_ADDRESS": Meaning("The address that receives the hot wallet's surplus.", MONEY),
    "HOT_LIMIT_USD": Meaning("How much of each coin the hot wallet keeps, besides the sum of open payouts.", MONEY),
    "SWEEP_MIN_USD": Meaning("A deposit address is swept from this worth on.", MONEY),
    "SWEEP_FEE_MAX_PERCENT": Meaning("A sweep waits while the network takes more than this part of it.", MONEY),
    "GAS_FUNDING_MAX_USD": Meaning("The most that one deposit address is sent for gas at once.", SIGNER),
    "POOL_LOW": Meaning("The signer makes new deposit addresses once there are fewer.", ACTORS),
    "POOL_HIGH": Meaning("The number of addresses up to which it makes them.", SIGNER),
}
EMAILS: Final = {
    "SMTP_URL": Meaning("The mail server, as `smtp://user:password@host:587`; without it no e-mail is sent.", CALLS),
    "MAIL_FROM": Meaning("The sender of e-mails.", WORKER),
    "EMAIL_RECIPIENT_DAY_MAX": Meaning("E-mails of one merchant to one address in a day.", CALLS),
    "EMAIL_MERCHANT_DAY_MAX": Meaning("E-mails of one merchant in a day.", CALLS),
}
LOAD: Final = {
    "WEB_THREADS": Meaning("Threads of a web process.", WEB),
    "CALL_SLOTS": Meaning("Threads that may wait for calls; fewer than `WEB_THREADS`.", WEB),
    "READ_SLOTS": Meaning("Threads that may wait for PostgreSQL; fewer than `WEB_THREADS`.", WEB),
    "CALL_WAIT_S": Meaning("How long a call waits for its worker.", WEB),
    "OPEN_REQUESTS_MAX": Meaning("Open requests of one source address.", WEB),
    "BODY_LIMIT": Meaning("The largest body of a request, in bytes.", WEB),
    "RATE_LIMIT_KEY_MINUTE": Meaning("Requests of an API key in a minute.", WEB),
    "RATE_LIMIT_KEY_SECOND": Meaning("Requests of an API key in a second.", WEB),
    "RATE_LIMIT_PUBLIC_MINUTE": Meaning("A source address's requests to public endpoints in a minute.", WEB),
    "RATE_LIMIT_ANONYMOUS_MINUTE": Meaning("Its requests for files, unknown paths and the API's description.", WEB),
    "RATE_LIMIT_BUYER_MINUTE": Meaning("Its choices of a coin and its checkouts in a minute.", WEB),
    "RATE_LIMIT_LINK_HOUR": Meaning("Its checkouts of one payment link in an hour.", WEB),
    "RATE_LIMIT_CLAIM_MINUTE": Meaning("Its claims of cheques in a minute.", WEB),
    "STATEMENT_TIMEOUT_MS": Meaning("The longest statement of a call or a request.", CALLS),
    "TICK_INTERVAL_MS": Meaning("The pause between two rounds of the most frequent ticks.", ("scheduler",)),
}

GROUPS: Final[Mapping[str, Mapping[str, Meaning]]] = {
    "Stores, secrets and logs": STORES,
    "Addresses of the gateway": ADDRESSES,
    "Keys": KEYS,
    "Networks and their providers": PROVIDERS,
    "Rates": RATES,
    "Payments": PAYMENTS,
    "Payouts": PAYOUTS,
    "Treasury": TREASURY,
    "E-mails": EMAILS,
    "Load": LOAD,
}
