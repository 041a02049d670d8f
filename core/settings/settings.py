"""Reads the environment once into a frozen object. The only reader of os.environ; called only by entry points.

All problems are reported together, by variable and without values, since many values are secrets. If ENVIRONMENT is
not set, the strict rules of production apply, so that a forgotten variable cannot open a gateway.
"""

import os
import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple, Self
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from core.catalogue.catalogue import Catalogue, Network
from core.catalogue.fields import Environment
from core.http.egress import with_ascii_host
from core.money import CENT_DIGITS, PPM_DIGITS, parse_units
from core.rates.generations import QUOTE_S
from core.rates.pricing import StandardTerms
from core.settings.defaults import DEFAULTS
from core.settings.networks import (
    CONFIRMATIONS_SUFFIX,
    EXPLORER_SUFFIX,
    RPC_SUFFIX,
    SANCTIONS_SUFFIX,
    catalogue_of,
    cold_addresses,
    fee_cap_name,
    fee_caps,
    figures,
    network_variables,
    rpc_variables,
)
from core.settings.rates import rate_problems, rate_urls, variable
from core.settings.redis_tls import redis_tls_problems, with_tls
from core.settings.rules import Start, holds_development_key, problems_of
from core.settings.signer_rates import dollar_rates, parse_signer_rates, signer_rate_problems
from core.settings.texts import (
    NONE,
    TXID,
    UNIX,
    BindText,
    ByCode,
    ContractText,
    DatabaseUrl,
    ExplorerText,
    Figures,
    HttpUrl,
    MailServerUrl,
    NodeUrls,
    RedisTls,
    RedisUrl,
    SecretKeysText,
    SentryDsn,
    SourceNetworks,
    ToleranceText,
    decimal_text,
)


class SettingsError(Exception):
    """The environment has problems; `problems` holds one line for each. database_url: as given, '' if it was not."""

    def __init__(self, problems: list[str], *, database_url: str = "") -> None:
        self.problems, self.database_url = tuple(problems), database_url
        super().__init__("\n".join(["the settings have problems:", *(f"  {problem}" for problem in problems)]))


class Settings(BaseModel):
    """Holds the settings of an installation. Field names are the variables' names in lower case."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    environment: Environment
    database_url: DatabaseUrl = Field(repr=False)
    # As the client opens it, with the parameters of REDIS_TLS.
    redis_url: RedisUrl = Field(repr=False)
    redis_tls: RedisTls | None = None
    redis_namespace: str = Field("sluice", pattern=r"^[A-Za-z0-9_-]{1,32}$")
    # Where web processes listen: an address, with PORT, or unix:/path. By default production is reached from outside.
    bind: BindText | None = None
    port: int = Field(8000, ge=1, le=65535)
    base_url: HttpUrl
    pay_url: HttpUrl
    trusted_proxies: SourceNetworks = ()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"]

    # Errors that are logged are sent there as well, redacted.
    sentry_dsn: SentryDsn | None = Field(None, repr=False)

    # The address, secret and all, at which a development stack pays and moves the clock for a page; development alone.
    development_desk_url: HttpUrl | None = Field(None, repr=False)

    secret_keys: SecretKeysText = Field(repr=False)
    # Base64 of the ed25519 key that verifies the address pool; every process that hands out addresses needs it.
    address_public_key: str = ""
    wallet_keystore: Path | None = None
    wallet_keystore_data: str | None = Field(None, repr=False)
    wallet_passphrase_file: Path | None = None
    wallet_passphrase: str | None = Field(None, repr=False)
    wallet_mnemonic: str | None = Field(None, repr=False)

    # By network code, in order of preference, as core.settings.node_urls reads them. Providers put their keys into the
    # path, the user or a header.
    rpc_urls: ByCode[NodeUrls] = Field(default_factory=lambda: MappingProxyType({}), repr=False)
    # By network code: the cap that replaces the catalogue's, in the unit of its family's caps, and the contract that
    # lists sanctioned addresses.
    fee_caps: ByCode[Annotated[int, Field(ge=1)]] = Field(default_factory=lambda: MappingProxyType({}))
    sanctions_oracles: ByCode[ContractText] = Field(default_factory=lambda: MappingProxyType({}))
    # By network code: the page of a transaction, in place of the catalogue's explorer; none: no link.
    explorer_urls: ByCode[ExplorerText] = Field(default_factory=lambda: MappingProxyType({}))
    # By network code: confirmations of deposits and payouts, in place of the catalogue's and never fewer.
    confirmations: ByCode[Annotated[int, Field(ge=1)]] = Field(default_factory=lambda: MappingProxyType({}))
    # Numbers that only the network's family reads, by network code and the end of the variable's name.
    figures: Figures = Field(default_factory=lambda: MappingProxyType({}))
    rpc_timeout_s: float = Field(5.0, gt=0, le=60)
    # Production believes a single provider only if the operator sets this.
    single_provider_ok: bool = False
    # The longest time and the most requests of one step of a network.
    rpc_step_s: float = Field(20.0, gt=0, le=300)
    rpc_step_requests: int = Field(2000, ge=10, le=1_000_000)
    # A deposit of this value or more is credited only once a second provider confirms it; smaller ones need none until
    # their sum in an hour on one network reaches the second limit.
    quorum_usd: int = Field(1_000, ge=0)
    quorum_hourly_usd: int = Field(10_000, ge=0)
    # How far back the second reading of a chain goes at most: by the network, an hour is 300 to 14,400 blocks.
    rescan_s: int = Field(3_600, ge=0, le=86_400)
    rates_source: Literal["static", "live"]
    # By source, without those that are switched off. A URL may hold the operator's key.
    rates_urls: ByCode[HttpUrl] = Field(default_factory=lambda: MappingProxyType(rate_urls({})), repr=False)
    # A coin has a rate only while this many sources agree on it.
    rates_sources_min: int = Field(2, ge=1, le=4)
    smtp_url: MailServerUrl | None = Field(None, repr=False)
    # E-mails to recipients and buyers in 24 hours: to one address for one merchant, and to all addresses for it.
    email_recipient_day_max: int = Field(20, ge=1, le=100_000)
    email_merchant_day_max: int = Field(5_000, ge=1, le=10_000_000)
    # The sender of e-mails; by default no-reply at the host of PAY_URL.
    mail_from: str | None = Field(None, pattern=r"^[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,190}$")
    # The token that a client of /metrics has to send; production without one has no such page.
    metrics_token: str | None = Field(None, pattern=r"^[\x21-\x7e]{16,256}$", repr=False)
    # The platform fee of merchants without one of their own: percent of the credit, and US dollars once for a payment.
    fee_percent: Annotated[str, decimal_text(PPM_DIGITS, highest=100)] = "1.5"
    fee_fixed_usd: Annotated[str, decimal_text(CENT_DIGITS, highest=10_000)] = "0.30"
    # How long a payment lives that asks for no time, and how long each of its quotes holds.
    invoice_lifetime_s: int = Field(3_600, ge=300, le=43_200)
    quote_lifetime_s: int = Field(QUOTE_S, ge=300, le=3_600)
    # The tolerance of merchants that never set their own, in percent: 0, or 1 to 5.
    accuracy_percent: ToleranceText = "0"
    # The largest price of a payment.
    price_max_usd: int = Field(10_000_000, ge=1, le=1_000_000_000)
    payout_links_enabled: bool = True
    # false: no payment link is made, shown or checked out; payments that were checked out go on.
    payment_links_enabled: bool = True
    # Payments of one payment link that may wait for their buyers at a time.
    payment_link_unpaid_max: int = Field(200, ge=1, le=10_000)
    webhook_allow_private: bool = False
    # A file with addresses to which the gateway sends nothing.
    deny_list: Path | None = None
    # false: new batches are refused; accepted ones are carried out.
    batches_enabled: bool = True
    # Limits on uncompleted batch items: of one merchant, and of all. A batch beyond either is refused.
    batch_open_items_merchant_max: int = Field(50_000, ge=5_000, le=10_000_000)
    batch_open_items_max: int = Field(500_000, ge=5_000, le=100_000_000)
    # The signer's own limits, whatever the rows order: for one payout, for an hour and for a day, over all networks.
    signer_payout_max_usd: int = Field(ge=0)
    signer_hourly_usd: int = Field(ge=0)
    signer_daily_usd: int = Field(ge=0)
    # The share of the hourly and of the daily limit that one merchant may use up.
    signer_merchant_percent: int = Field(ge=1, le=100)
    # A payout older than its fee quote waits while the network's fee is above this percentage of its charge.
    payout_fee_max_percent: int = Field(200, ge=100, le=100_000)
    # The most that the gateway adds in a day to the fees that one merchant's older payouts were charged.
    payout_fee_carried_usd: int = Field(50, ge=0)
    # The lowest worth of each coin by which the signer counts its limits, in core.rates.pricing's scale.
    signer_rates: Annotated[ByCode[int], BeforeValidator(parse_signer_rates)] = Field(
        default_factory=lambda: MappingProxyType(dollar_rates())
    )
    # The day on which an operator last reviewed them.
    signer_rates_at: date | None = None

    # The addresses that receive the hot wallet's surplus, by network code, in the stored form.
    cold_addresses: ByCode[str] = Field(default_factory=lambda: MappingProxyType({}))
    # A deposit address is swept once it holds a coin of this worth, and while the fee is at most this percentage of it.
    sweep_min_usd: int = Field(ge=0)
    sweep_fee_max_percent: int = Field(ge=1, le=10_000)
    # The most that one deposit address is sent for gas at once.
    gas_funding_max_usd: int = Field(50, ge=0)
    # The worth of a coin that a network's hot wallet keeps; the surplus goes to the cold address, if there is one.
    hot_limit_usd: int = Field(10_000, ge=0)

    # Gas coin that the gateway does not sell: the worth of this many transfers, for each network that takes it.
    gas_reserve_transfers: int = Field(20, ge=0, le=100_000)

    # How far below the market a conversion's rate is, in parts per million.
    conversion_spread_ppm: int = Field(5_000, ge=0, le=500_000)

    web_threads: int = Field(32, ge=2, le=512)
    # Threads that may wait for calls, and for PostgreSQL's answer to a read; by default three quarters of WEB_THREADS.
    call_slots: int | None = Field(None, ge=1, le=511)
    read_slots: int | None = Field(None, ge=1, le=511)
    call_wait_s: float = Field(10.0, gt=0, le=25)
    # Open requests of one source address; a trusted proxy's requests count for the client that it forwards.
    open_requests_max: int = Field(128, ge=8, le=2000)
    body_limit: int = Field(1024 * 1024, ge=1024, le=1024 * 1024)
    # Limits on requests: of an API key, of a source address on public endpoints, and on those public endpoints that
    # choose a coin or check out.
    rate_limit_key_minute: int = Field(600, ge=1, le=10_000_000)
    rate_limit_key_second: int = Field(100, ge=1, le=10_000_000)
    rate_limit_public_minute: int = Field(120, ge=1, le=10_000_000)
    # A source address's requests for static files, unknown paths and the API's description; readiness counts apart.
    rate_limit_anonymous_minute: int = Field(1200, ge=1, le=10_000_000)
    rate_limit_buyer_minute: int = Field(20, ge=1, le=10_000_000)
    # Checkouts of one payment link from a source address, in the hour for which each waits for its buyer.
    rate_limit_link_hour: int = Field(40, ge=1, le=10_000_000)
    # Claims of cheques from a source address.
    rate_limit_claim_minute: int = Field(20, ge=1, le=10_000_000)
    statement_timeout_ms: int = Field(2000, ge=1, le=60_000)
    tick_interval_ms: int = Field(ge=50, le=60_000)
    pool_low: int = Field(ge=1)
    pool_high: int = Field(le=1_000_000)

    @model_validator(mode="after")
    def _check_relations(self) -> Self:
        relations = {
            "CALL_SLOTS must be below WEB_THREADS, or pages and health stall with the calls": (
                self.calls_max < self.web_threads
            ),
            "READ_SLOTS must be below WEB_THREADS, or everything stalls with PostgreSQL": (
                self.reads_max < self.web_threads
            ),
            "POOL_LOW must be below POOL_HIGH": self.pool_low < self.pool_high,
            "SIGNER_PAYOUT_MAX_USD must not be above SIGNER_HOURLY_USD, nor that above SIGNER_DAILY_USD": (
                self.signer_payout_max_usd <= self.signer_hourly_usd <= self.signer_daily_usd
            ),
        }
        broken = [text for text, holds in relations.items() if not holds]
        if broken:
            raise ValueError("; ".join(broken))
        return self

    @property
    def listens_on(self) -> str:
        """Return the address of the web processes, as gunicorn reads it."""
        # Production is reached from outside, by a platform's router; a development stack only from its own machine.
        host = self.bind or ("127.0.0.1" if self.environment == "development" else "0.0.0.0")  # noqa: S104
        return host if host.startswith(UNIX) else f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def catalogue(self) -> Catalogue:
        """Return the environment's catalogue, with the operator's confirmations."""
        return catalogue_of(self.environment, tuple(sorted(self.confirmations.items())))

    @property
    def calls_max(self) -> int:
        """Return the number of threads of a web process that may wait for calls at once."""
        return self.call_slots or max(1, self.web_threads * 3 // 4)

    @property
    def reads_max(self) -> int:
        """Return the number of threads of a web process that may read PostgreSQL at once."""
        return self.read_slots or max(1, self.web_threads * 3 // 4)

    @property
    def standard_terms(self) -> StandardTerms:
        """Return the gateway's terms, in whole units."""
        return StandardTerms(
            fee_ppm=parse_units(self.fee_percent, digits=PPM_DIGITS, error=ValueError),
            fee_fixed_usd_cents=parse_units(self.fee_fixed_usd, digits=CENT_DIGITS, error=ValueError),
            price_max_usd=self.price_max_usd,
            accuracy_ppm=parse_units(self.accuracy_percent, digits=PPM_DIGITS, error=ValueError),
            lifetime_s=self.invoice_lifetime_s,
            quote_s=self.quote_lifetime_s,
        )

    @property
    def own_hosts(self) -> frozenset[str]:
        """Return the gateway's own host names, to which it never sends a webhook."""
        return frozenset(urlsplit(with_ascii_host(url)).hostname or "" for url in (self.base_url, self.pay_url))

    @property
    def mail_sender(self) -> str:
        """Return the sender address of e-mails."""
        return self.mail_from or f"no-reply@{urlsplit(self.pay_url).hostname}"

    def transaction_url(self, network: Network, txid: str) -> str:
        """Return the page of a transaction in an explorer; empty without a transaction, or if the network has none."""
        pattern = self.explorer_urls.get(network.code, network.explorer)
        return "" if not txid or pattern in {"", NONE} else pattern.replace(TXID, quote(txid, safe=""))

    def passphrase(self) -> str | None:
        """Return the keystore's passphrase from its variable or file. Raises OSError."""
        if self.wallet_passphrase_file is None:
            return self.wallet_passphrase
        return self.wallet_passphrase_file.read_text(encoding="utf-8").rstrip("\r\n")

    def warnings(self) -> tuple[str, ...]:
        """Return a warning for each setting that is unsafe in production; logged at every start."""
        loud = {
            "SECRET_KEYS is the published development key": holds_development_key(self.secret_keys),
            "RATES_SOURCE is static, so prices are invented": self.rates_source == "static",
            "WEBHOOK_ALLOW_PRIVATE is set, so webhooks may go to this machine": self.webhook_allow_private,
            "WALLET_MNEMONIC is set, so the root secret stands in the environment": self.wallet_mnemonic is not None,
            "PAY_URL is plain http, so whoever listens on the way can take a cheque": (
                self.environment == "production" and self.pay_url.startswith("http://")
            ),
        }
        return tuple(text for text, applies in loud.items() if applies)


def load_settings(env: Mapping[str, str] | None = None, *, role: Start = "cli") -> Settings:
    """Return the settings in env (os.environ by default) for a process of that role.

    Raises SettingsError with all problems. A blank variable counts as absent.
    """
    given = {name: value for name, value in (os.environ if env is None else env).items() if value.strip()}
    environment: Environment = "development" if given.get("ENVIRONMENT") == "development" else "production"
    values = {**DEFAULTS[environment], **given}
    problems = [
        *problems_of(values, environment, role),
        *rate_problems(values, is_production=environment == "production"),
        *signer_rate_problems(values, environment, role),
        *redis_tls_problems(values),
    ]
    try:
        settings = Settings.model_validate(_fields(values, environment))
    except ValidationError as error:
        # A variable derived from another would only repeat that one's problem.
        derived = {"production": {"PAY_URL"}, "development": {"PAY_URL", "BASE_URL"}}[environment] - given.keys()
        faults = [line for line in _describe(error, values) if line.partition(":")[0] not in derived]
        raise SettingsError([*faults, *problems], database_url=values.get("DATABASE_URL", "")) from None
    if problems:
        raise SettingsError(problems, database_url=values.get("DATABASE_URL", ""))
    return settings


# Names of variables whose values may hold a secret.
_SECRET_VARIABLE = re.compile(r"(KEYS?|TOKEN|PASSPHRASE|PASSWORD|SECRET|MNEMONIC|DATA|DSN|URLS?)$")


class FirstLook(NamedTuple):
    """The facts about the environment that are needed before it is judged. secrets: texts that may be secret."""

    is_production: bool
    secrets: tuple[str, ...]


def first_look() -> FirstLook:
    """Return whether the environment is production's, and the texts that a failed start may not show."""
    values = [value for name, value in os.environ.items() if _SECRET_VARIABLE.search(name)]
    parts = [part for value in values for part in value.split(",")]
    return FirstLook(os.environ.get("ENVIRONMENT") != "development", (*values, *parts))


def given_names() -> frozenset[str]:
    """Return the names in this process's environment, without their values."""
    return frozenset(os.environ)


def _fields(values: Mapping[str, str], environment: Environment) -> dict[str, object]:
    """Pick our variables, and derive the URLs that follow from others."""
    fields: dict[str, object] = {"environment": environment}
    fields |= {name: values[name.upper()] for name in Settings.model_fields if name.upper() in values}
    fields["rpc_urls"] = rpc_variables(values)
    fields["fee_caps"] = fee_caps(values)
    fields["figures"] = figures(values)
    fields["sanctions_oracles"] = network_variables(values, SANCTIONS_SUFFIX)
    fields["explorer_urls"] = network_variables(values, EXPLORER_SUFFIX)
    fields["confirmations"] = network_variables(values, CONFIRMATIONS_SUFFIX)
    fields["cold_addresses"] = cold_addresses(values, environment)
    fields["rates_urls"] = rate_urls(values)
    if "REDIS_URL" in values and "REDIS_TLS" in values:
        fields["redis_url"] = with_tls(values["REDIS_URL"], values["REDIS_TLS"])
    if environment == "development":
        fields.setdefault("base_url", f"http://127.0.0.1:{values.get('PORT', '8000')}")
    if "base_url" in fields:
        fields.setdefault("pay_url", fields["base_url"])
    return fields


def _describe(error: ValidationError, values: Mapping[str, str]) -> Iterator[str]:
    """Turn pydantic's findings into lines by variable, without the values."""
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        where = problem["loc"]
        text = "is required" if problem["type"] == "missing" else problem["msg"].removeprefix("Value error, ")
        match where:
            case ("rpc_urls", network, *_):
                yield f"{str(network).upper()}{RPC_SUFFIX}: {text}"
            case ("fee_caps", network, *_):
                yield f"{fee_cap_name(values, str(network))}: {text}"
            case ("figures", network, suffix, *_):
                yield f"{str(network).upper()}{suffix}: {text}"
            case ("sanctions_oracles", network, *_):
                yield f"{str(network).upper()}{SANCTIONS_SUFFIX}: {text}"
            case ("explorer_urls", network, *_):
                yield f"{str(network).upper()}{EXPLORER_SUFFIX}: {text}"
            case ("confirmations", network, *_):
                yield f"{str(network).upper()}{CONFIRMATIONS_SUFFIX}: {text}"
            case ("rates_urls", source, *_):
                yield f"{variable(str(source))}: {text}"
            case (name, *_):
                yield f"{str(name).upper()}: {text}"
            case _:
                yield text
