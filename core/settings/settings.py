"""Reads the environment, once, into one frozen object. The only reader of os.environ; called by entry points alone.

All problems are reported together, by variable, and never with a value: many values are secrets. Without ENVIRONMENT
the strict rules of production hold, so that a forgotten variable cannot open a gateway.
"""

import os
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from core.catalogue.fields import Environment
from core.money import CENT_DIGITS, PPM_DIGITS, parse_units
from core.net.egress import with_ascii_host
from core.rates.pricing import StandardTerms
from core.settings.defaults import DEFAULTS
from core.settings.networks import (
    RPC_SUFFIX,
    SANCTIONS_SUFFIX,
    cold_addresses,
    fee_cap_name,
    fee_caps,
    figures,
    network_variables,
    rpc_variables,
)
from core.settings.rates import rate_problems, rate_urls, variable
from core.settings.rules import Role, holds_development_key, problems_of
from core.settings.signer_rates import dollar_rates, parse_signer_rates, signer_rate_problems
from core.settings.texts import (
    ByCode,
    ContractText,
    DatabaseUrl,
    Figures,
    HttpUrl,
    MailServerUrl,
    NodeUrls,
    RedisUrl,
    SecretKeysText,
    SourceNetworks,
    decimal_text,
)


class SettingsError(Exception):
    """The environment does not make a gateway; problems holds one line for each reason."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(["the settings have problems:", *(f"  {problem}" for problem in problems)]))


class Settings(BaseModel):
    """Everything that differs between two installations. Field names are the variables' in lower case."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    environment: Environment
    database_url: DatabaseUrl = Field(repr=False)
    redis_url: RedisUrl = Field(repr=False)
    redis_namespace: str = Field("sluice", pattern=r"^[A-Za-z0-9_-]{1,32}$")
    port: int = Field(8000, ge=1, le=65535)
    base_url: HttpUrl
    pay_url: HttpUrl
    trusted_proxies: SourceNetworks = ()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"]

    secret_keys: SecretKeysText = Field(repr=False)
    # Base64 of the ed25519 key that signs the address pool; whoever hands out addresses needs it.
    address_public_key: str = ""
    wallet_keystore: Path | None = None
    wallet_keystore_data: str | None = Field(None, repr=False)
    wallet_passphrase_file: Path | None = None
    wallet_passphrase: str | None = Field(None, repr=False)
    wallet_mnemonic: str | None = Field(None, repr=False)

    # By network code, in order of preference, as core.settings.node_urls reads them. Providers put their keys into the
    # path, the user or a header.
    rpc_urls: ByCode[NodeUrls] = Field(default_factory=lambda: MappingProxyType({}), repr=False)
    # By network code: what replaces the catalogue's cap, in the unit of its family's caps, and the contract that lists
    # sanctioned addresses.
    fee_caps: ByCode[Annotated[int, Field(ge=1)]] = Field(default_factory=lambda: MappingProxyType({}))
    sanctions_oracles: ByCode[ContractText] = Field(default_factory=lambda: MappingProxyType({}))
    # By network code and the end of the variable's name: numbers that only the network's family reads.
    figures: Figures = Field(default_factory=lambda: MappingProxyType({}))
    rpc_timeout_s: float = Field(5.0, gt=0, le=60)
    # Production believes a lone provider only where the operator has said so.
    single_provider_ok: bool = False
    # What one step of a network may take, in time and in requests.
    rpc_step_s: float = Field(20.0, gt=0, le=300)
    rpc_step_requests: int = Field(2000, ge=10, le=1_000_000)
    # From this value on a deposit is credited only once a second provider tells the same of it; what smaller ones may
    # make together in an hour on one network without that.
    quorum_usd: int = Field(1_000, ge=0)
    quorum_hourly_usd: int = Field(10_000, ge=0)
    # The second reading of the chain goes back so far at most: an hour is 300 blocks here and 14,400 there.
    rescan_s: int = Field(3_600, ge=0, le=86_400)
    rates_source: Literal["static", "live"]
    # By source, without those that are switched off. May hold the operator's key.
    rates_urls: ByCode[HttpUrl] = Field(default_factory=lambda: MappingProxyType(rate_urls({})), repr=False)
    # A coin has a rate only while this many sources agree on it.
    rates_sources_min: int = Field(2, ge=1, le=4)
    smtp_url: MailServerUrl | None = Field(None, repr=False)
    # E-mails to recipients and buyers in 24 hours: to one address for one merchant, and to all addresses for it.
    email_recipient_day_max: int = Field(20, ge=1, le=100_000)
    email_merchant_day_max: int = Field(5_000, ge=1, le=10_000_000)
    # Who e-mails come from; without it no-reply at the host of PAY_URL.
    mail_from: str | None = Field(None, pattern=r"^[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,190}$")
    # What whoever reads /metrics has to show; production without one has no such page.
    metrics_token: str | None = Field(None, pattern=r"^[\x21-\x7e]{16,256}$", repr=False)
    # The platform fee of merchants without one of their own: percent of what is credited, and US dollars once for a
    # payment.
    fee_percent: Annotated[str, decimal_text(PPM_DIGITS, highest=100)] = "1.5"
    fee_fixed_usd: Annotated[str, decimal_text(CENT_DIGITS, highest=10_000)] = "0.30"
    # The largest price of a payment.
    price_max_usd: int = Field(10_000_000, ge=1, le=1_000_000_000)
    payout_links_enabled: bool = True
    # false: no payment link is made, shown or checked out; what was checked out goes on.
    payment_links_enabled: bool = True
    # Payments of one payment link that may wait for their buyers at a time.
    payment_link_unpaid_max: int = Field(200, ge=1, le=10_000)
    webhook_allow_private: bool = False
    # A file with addresses that nothing is sent to.
    deny_list: Path | None = None
    # false: no batch is taken; those that were taken are done.
    batches_enabled: bool = True
    # Items of batches that are not completed: one merchant's, and everybody's. A batch beyond either is refused.
    batch_open_items_merchant_max: int = Field(50_000, ge=5_000, le=10_000_000)
    batch_open_items_max: int = Field(500_000, ge=5_000, le=100_000_000)
    # What the signer lets leave, whatever it is told: one payout; an hour and a day of them, on all networks together.
    signer_payout_max_usd: int = Field(ge=0)
    signer_hourly_usd: int = Field(ge=0)
    signer_daily_usd: int = Field(ge=0)
    # What of both one merchant may use up.
    signer_merchant_percent: int = Field(ge=1, le=100)
    # A payout that is older than its fee quote waits while the network's fee is above so many percent of its charge.
    payout_fee_max_percent: int = Field(200, ge=100, le=100_000)
    # What the gateway adds in a day to the fees that one merchant's older payouts were charged.
    payout_fee_carried_usd: int = Field(50, ge=0)
    # What the signer reckons a coin to be worth at least, by coin, in core.rates.pricing's scale.
    signer_rates: Annotated[ByCode[int], BeforeValidator(parse_signer_rates)] = Field(
        default_factory=lambda: MappingProxyType(dollar_rates())
    )
    # The day on which somebody last looked at them.
    signer_rates_at: date | None = None

    # Where what the hot wallet need not hold goes; by network code, as addresses are stored.
    cold_addresses: ByCode[str] = Field(default_factory=lambda: MappingProxyType({}))
    # A deposit address is swept once it holds so much of a coin, and while that costs no more than so much of it.
    sweep_min_usd: int = Field(ge=0)
    sweep_fee_max_percent: int = Field(ge=1, le=10_000)
    # What one deposit address is sent for gas at once, at most.
    gas_funding_max_usd: int = Field(50, ge=0)
    # What the hot wallet of a network keeps of a coin; what is above goes to the cold address, where there is one.
    hot_limit_usd: int = Field(10_000, ge=0)

    # Of a gas coin so many transfers' worth is sold to nobody, for each network that takes it.
    gas_reserve_transfers: int = Field(20, ge=0, le=100_000)

    # What a conversion gives less than the market, in parts per million.
    conversion_spread_ppm: int = Field(5_000, ge=0, le=500_000)

    web_threads: int = Field(32, ge=2, le=512)
    call_slots: int = Field(24, ge=1, le=511)
    # Threads that may wait for PostgreSQL's answer to a read; three quarters of them where it is not said.
    read_slots: int | None = Field(None, ge=1, le=511)
    call_wait_s: float = Field(10.0, gt=0, le=25)
    # Requests that one source address may have on their way to us; trusted proxies' count for whom they forward.
    open_requests_max: int = Field(128, ge=8, le=2000)
    body_limit: int = Field(1024 * 1024, ge=1024, le=1024 * 1024)
    # Requests: of an API key, of a source address on public endpoints, and there on those that choose or check out.
    rate_limit_key_minute: int = Field(600, ge=1, le=10_000_000)
    rate_limit_key_second: int = Field(100, ge=1, le=10_000_000)
    rate_limit_public_minute: int = Field(120, ge=1, le=10_000_000)
    # Its requests for static files, unknown paths and the description of the API; and, apart from those, for readiness.
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
                self.call_slots < self.web_threads
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
    def reads_max(self) -> int:
        """Return how many threads of a web process may read PostgreSQL at once."""
        return self.read_slots or max(1, self.web_threads * 3 // 4)

    @property
    def standard_terms(self) -> StandardTerms:
        """Return the gateway's terms, in whole units."""
        return StandardTerms(
            fee_ppm=parse_units(self.fee_percent, digits=PPM_DIGITS, error=ValueError),
            fee_fixed_usd_cents=parse_units(self.fee_fixed_usd, digits=CENT_DIGITS, error=ValueError),
            price_max_usd=self.price_max_usd,
        )

    @property
    def own_hosts(self) -> frozenset[str]:
        """Return the hosts under which the gateway itself is reached; it never sends a webhook to them."""
        return frozenset(urlsplit(with_ascii_host(url)).hostname or "" for url in (self.base_url, self.pay_url))

    @property
    def mail_sender(self) -> str:
        """Return the address that e-mails come from."""
        return self.mail_from or f"no-reply@{urlsplit(self.pay_url).hostname}"

    def passphrase(self) -> str | None:
        """Return the keystore's passphrase from its variable or file. Raises OSError."""
        if self.wallet_passphrase_file is None:
            return self.wallet_passphrase
        return self.wallet_passphrase_file.read_text(encoding="utf-8").rstrip("\r\n")

    def warnings(self) -> tuple[str, ...]:
        """Name what is only fit for development, to be said aloud at every start."""
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


def load_settings(env: Mapping[str, str] | None = None, *, role: Role = "cli") -> Settings:
    """Return the settings in env (os.environ by default) for a process of that role.

    Raises SettingsError with every problem that was found. A variable that is set to nothing counts as absent.
    """
    given = {name: value for name, value in (os.environ if env is None else env).items() if value.strip()}
    environment: Environment = "development" if given.get("ENVIRONMENT") == "development" else "production"
    values = {**DEFAULTS[environment], **given}
    problems = [
        *problems_of(values, environment, role),
        *rate_problems(values, is_production=environment == "production"),
        *signer_rate_problems(values, environment, role),
    ]
    try:
        settings = Settings.model_validate(_fields(values, environment))
    except ValidationError as error:
        # A name that follows from another would repeat that one's problem.
        derived = {"production": {"PAY_URL"}, "development": {"PAY_URL", "BASE_URL"}}[environment] - given.keys()
        found = [line for line in _describe(error, values) if line.partition(":")[0] not in derived]
        raise SettingsError([*found, *problems]) from None
    if problems:
        raise SettingsError(problems)
    return settings


def _fields(values: Mapping[str, str], environment: Environment) -> dict[str, object]:
    """Pick our variables, and derive the addresses that follow from others."""
    fields: dict[str, object] = {"environment": environment}
    fields |= {name: values[name.upper()] for name in Settings.model_fields if name.upper() in values}
    fields["rpc_urls"] = rpc_variables(values)
    fields["fee_caps"] = fee_caps(values)
    fields["figures"] = figures(values)
    fields["sanctions_oracles"] = network_variables(values, SANCTIONS_SUFFIX)
    fields["cold_addresses"] = cold_addresses(values, environment)
    fields["rates_urls"] = rate_urls(values)
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
            case ("rates_urls", source, *_):
                yield f"{variable(str(source))}: {text}"
            case (name, *_):
                yield f"{str(name).upper()}: {text}"
            case _:
                yield text
