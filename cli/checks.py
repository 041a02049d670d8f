"""Checks an installation for faults, one subject after another. Called by cli.doctor."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from actors.queue.heartbeats import Heartbeats
from actors.queue.link import RedisLink
from api.health.concerns import Concern, concerns
from chains import registry
from chains.base import ProviderError
from core.catalogue.catalogue import Network
from core.payouts.deny_list import DenyList
from core.settings import names, signer_rates
from core.settings.node_urls import read_node_url
from core.settings.redis_tls import UNVERIFIED
from core.settings.rules import Role
from core.settings.settings import Settings, given_names
from models.addresses.reservations import SEQUENCES, level
from models.db import grants, migrate, rights
from models.db.base import app_now, rows, value
from models.payouts import freezes
from models.rates.rates import load_market
from models.spends import freshness, signing_stops
from models.spends import reads as spend_reads

POSTGRESQL_MIN: Final = 140_000
REDIS_MIN: Final = (6, 2)
REDIS_TIMEOUT_S: Final = 3
# A signature is valid for five minutes either way; an offset of half a minute belongs to one party's clock.
SKEW_WARN_S: Final = 2
# The last labels of a host's name, which name its company.
DOMAIN_LABELS: Final = 2
SKEW_FAIL_S: Final = 30
# Miners and validators may date a block ahead: on bitcoin by two hours, which is twelve blocks.
BLOCKS_AHEAD_MAX: Final = 12
# A scan at the head has a block younger than this, if the chain makes blocks.
BLOCK_AGE_GRACE_S: Final = 120
BLOCKS_OLD_MAX: Final = 60

SEE_STORES: Final = "see the lines postgresql and redis"


class Verdict(StrEnum):
    """The weight of a finding: a failure keeps the gateway from working, or from working safely."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    check: str
    verdict: Verdict
    text: str
    # The way out, where it is not that of the check.
    fix: str = ""


Check = Callable[[Settings], Iterator[Finding]]


def check_settings(settings: Settings) -> Iterator[Finding]:
    """Report settings that are fit for development only."""
    yield Finding("settings", Verdict.OK, f"complete, for {settings.environment}")
    yield from (Finding("settings", Verdict.WARN, warning) for warning in settings.warnings())
    yield from check_names()


def check_names() -> Iterator[Finding]:
    """Report variables that resemble a setting and have no effect."""
    for name, meant in names.lookalikes(given_names()):
        yield Finding("settings", Verdict.WARN, f"{name} is no setting and has no effect: is {meant} meant?")


def check_postgresql(settings: Settings) -> Iterator[Finding]:
    """Check version, durability, clock and tables."""
    ((version, number, fsync, commit, server_time),) = rows(
        "SELECT current_setting('server_version'), current_setting('server_version_num')::int,"
        " current_setting('fsync'), current_setting('synchronous_commit'), clock_timestamp()"
    )
    skew_s = abs((datetime.now(UTC) - server_time).total_seconds())
    yield Finding("postgresql", _bad_if(number < POSTGRESQL_MIN), f"version {version}")
    durable = fsync == "on" and commit != "off"
    lossy = Verdict.FAIL if settings.environment == "production" else Verdict.WARN
    yield Finding("durability", Verdict.OK if durable else lossy, f"fsync {fsync}, synchronous_commit {commit}")
    yield Finding("clock", _by_limits(skew_s), f"{skew_s:.1f} s between this machine and PostgreSQL")


def check_tables(settings: Settings) -> Iterator[Finding]:
    """Check that migrations are applied and that production's clock was never moved."""
    pending = migrate.pending(settings.database_url)
    if pending:
        yield Finding("migrations", Verdict.FAIL, f"pending: {', '.join(pending)} (run sluice migrate)")
        return
    yield Finding("migrations", Verdict.OK, "all applied")
    ahead_s = value("SELECT extract(epoch FROM ahead)::bigint FROM app_clock")
    moved = ahead_s != 0
    unreal = Verdict.FAIL if settings.environment == "production" else Verdict.OK
    yield Finding("app clock", unreal if moved else Verdict.OK, f"{ahead_s} s ahead" if moved else "the real one")
    yield from _check_pool(settings)
    yield from _check_freezes()
    unclear = sum(count for _, count in spend_reads.unclear_by_network())
    if unclear:
        text = f"{unclear} moved something else than they were to move (sluice payouts unsettled)"
        yield Finding("payouts to settle", Verdict.FAIL, text)
    for stopped in signing_stops.listing():
        hint = f"sluice treasury recover {stopped.network}"
        yield Finding("signing", Verdict.FAIL, f"{stopped.network}: {stopped.reason} ({hint})")
    for wait in freshness.waits(settings.rpc_urls):
        yield Finding("signing", Verdict.FAIL, f"{wait.network}: {wait.reason}")


def check_block_times(settings: Settings) -> Iterator[Finding]:
    """Compare PostgreSQL's clock with the newest blocks: prices, windows and expiry depend on it."""
    networks = settings.catalogue.networks
    is_production = settings.environment == "production"
    for code, ahead_s, is_behind in rows(
        "SELECT network, extract(epoch FROM block_time - app_now())::float8, head_height > height FROM chain_cursors"
        " ORDER BY network"
    ):
        if code not in settings.rpc_urls:
            continue
        block_s = networks[code].block_time_ms / 1000
        if ahead_s > max(SKEW_FAIL_S, BLOCKS_AHEAD_MAX * block_s):
            text = f"{code}: the newest block is {ahead_s:.0f} s in the future (set PostgreSQL's clock)"
            yield Finding("block times", Verdict.FAIL if is_production else Verdict.WARN, text)
        elif is_production and not is_behind and -ahead_s > BLOCK_AGE_GRACE_S + BLOCKS_OLD_MAX * block_s:
            text = f"{code}: the newest block is {-ahead_s:.0f} s old (the chain stands still, or PostgreSQL's clock is"
            yield Finding("block times", Verdict.WARN, f"{text} ahead)")
        else:
            yield Finding("block times", Verdict.OK, f"{code}: the newest block is {-ahead_s:.0f} s old")


def check_deny_list(settings: Settings) -> Iterator[Finding]:
    """Read the deny list; the processes that need it do not start with an invalid one. Raises DenyListError."""
    if settings.deny_list is None:
        yield Finding("deny list", Verdict.OK, "none is set")
        return
    yield Finding("deny list", Verdict.OK, f"addresses on it: {len(DenyList(settings.deny_list))}")


def check_redis(settings: Settings) -> Iterator[Finding]:
    """Check the version, the command with which consumers wait, and that nothing is evicted."""
    with redis.Redis.from_url(
        settings.redis_url, socket_timeout=REDIS_TIMEOUT_S, retry=Retry(NoBackoff(), 0), decode_responses=True
    ) as client:
        facts: dict[str, Any] = client.info()
        version = str(facts["redis_version"])
        key = f"{settings.redis_namespace}:doctor"
        client.blmove(key, key, 0.01)
    is_old = tuple(int(part) for part in version.split(".")[:2]) < REDIS_MIN
    yield Finding("redis", _bad_if(is_old), f"version {version}, BLMOVE works")
    policy = str(facts.get("maxmemory_policy", "unknown"))
    verdict = Verdict.OK if policy == "noeviction" else Verdict.WARN
    yield Finding("redis memory", verdict, f"maxmemory-policy {policy}")
    if settings.redis_tls == UNVERIFIED:
        yield Finding("redis TLS", Verdict.WARN, "the server's certificate is not verified, by REDIS_TLS")


def check_providers(settings: Settings) -> Iterator[Finding]:
    """Ask every provider for its chain, and for the methods that the scan uses."""
    if not settings.rpc_urls:
        yield Finding("providers", Verdict.WARN, "no <NETWORK>_RPC_URLS: no network is served")
    networks = settings.catalogue.networks
    for code in settings.rpc_urls:
        chain = registry.reader(networks[code], settings)
        answers = [_judged(networks[code], answer) for answer in chain.identify()]
        yield from _judge_providers(networks[code], answers)
        yield from _name_one_voice(code, settings.rpc_urls[code])
        lacking = zip(answers, chain.lacking(), strict=True)
        for number, ((is_good, _), lines) in enumerate(lacking, start=1):
            if is_good:
                yield from _name_methods(f"{code} provider {number} methods", lines)


def check_keystore(settings: Settings) -> Iterator[Finding]:
    """Open the keystore, if this process may read it."""
    if not (settings.wallet_keystore or settings.wallet_keystore_data or settings.wallet_mnemonic):
        yield Finding("keystore", Verdict.OK, "not visible to this process, as it should be for all but the signer")
        return
    from chains.keys import load_keys  # noqa: PLC0415 - the wallet's libraries, for the one process that needs them

    public_key = load_keys(settings).pool_public_key
    matches = settings.address_public_key in {"", public_key}
    text = "opens" if matches else "opens, but ADDRESS_PUBLIC_KEY belongs to another"
    yield Finding("keystore", _bad_if(not matches), text)


def check_running(settings: Settings) -> Iterator[Finding]:
    """Report the faults of the running gateway, as /readyz does: a failure if it stops something, else a warning."""
    link = RedisLink(settings.redis_url, client_name="sluice-cli")
    try:
        for name, concern in concerns(settings, Heartbeats(link, settings.redis_namespace)).items():
            yield from judge_concern(name, concern)
    finally:
        link.close()


def judge_concern(name: str, concern: Concern) -> Iterator[Finding]:
    """Report the faults of one concern of the running gateway, or that it cannot be checked."""
    try:
        faults = list(concern())
    except Exception as error:  # noqa: BLE001 - its text may hold a password; the checks of the stores report it
        yield Finding(name, Verdict.FAIL, f"cannot be checked: {type(error).__name__}", fix=SEE_STORES)
        return
    for fault in faults:
        text = f"{fault.text}: {fault.detail}" if fault.detail else fault.text
        yield Finding(name, Verdict.FAIL if fault.stops else Verdict.WARN, text)
    if not faults:
        yield Finding(name, Verdict.OK, "nothing to look at")


def check_signer_rates(settings: Settings) -> Iterator[Finding]:
    """Report coins whose rate from the signer's own source is far from the market's, and rates that are old."""
    lines = [*signer_rates.far_off(settings.signer_rates, load_market().rates)]
    aging = signer_rates.aging(settings.signer_rates, settings.signer_rates_at, app_now().date())
    if aging is not None:
        lines.append(aging)
    yield from (Finding("signer rates", Verdict.WARN, line) for line in lines)
    if not lines:
        yield Finding("signer rates", Verdict.OK, "not far from the market")


# The roles of PostgreSQL by the kinds of process that have one; the others run as the tables' owner.
_RIGHTS: Final = {"web": grants.WEB, "worker": grants.WORKERS, "signer": grants.SIGNER}
RIGHTS_SHOWN_MAX: Final = 5


def check_rights(role: Role, _settings: Settings) -> Iterator[Finding]:
    """Report rights that the user of this DATABASE_URL has beyond the needs of its kind of process, or lacks."""
    missing = rights.missing_roles()
    if missing:
        yield Finding("roles", Verdict.WARN, f"not made, for want of CREATEROLE: {', '.join(missing)}")
    if role not in _RIGHTS:
        return
    difference = rights.compare(_RIGHTS[role])
    if difference.more:
        yield Finding("rights", Verdict.WARN, f"this process has more than it needs: {_some(difference.more)}")
    if difference.less:
        yield Finding("rights", Verdict.FAIL, f"this process lacks {_some(difference.less)}")
    if difference == ([], []):
        yield Finding("rights", Verdict.OK, f"those of {_RIGHTS[role]}")


def _some(texts: list[str]) -> str:
    rest = len(texts) - RIGHTS_SHOWN_MAX
    return ", ".join(texts[:RIGHTS_SHOWN_MAX]) + (f", and {rest} more" if rest > 0 else "")


CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("settings", check_settings),
    ("postgresql", check_postgresql),
    ("tables", check_tables),
    ("block times", check_block_times),
    ("deny list", check_deny_list),
    ("redis", check_redis),
    ("running", check_running),
    ("providers", check_providers),
    ("keystore", check_keystore),
    ("signer rates", check_signer_rates),
)


def _check_freezes() -> Iterator[Finding]:
    """Report the freezes: a failure if one stops all payouts, a network or a coin; otherwise a warning."""
    frozen = freezes.listing()
    text = f"{len(frozen)} freezes in force (sluice payouts frozen)" if frozen else "nothing is frozen"
    is_wide = any(freeze.scope in {"all", "network", "coin"} for freeze in frozen)
    yield Finding("payouts", Verdict.FAIL if is_wide else Verdict.WARN if frozen else Verdict.OK, text)


def _check_pool(settings: Settings) -> Iterator[Finding]:
    networks = settings.catalogue.networks
    for family in sorted({networks[code].family for code in settings.rpc_urls} & SEQUENCES.keys()):
        available = level(family)
        # The signer fills the pool from the low mark on, so a little less is normal; an empty pool stops every sale.
        short = Verdict.WARN if available < settings.pool_low else Verdict.OK
        verdict = Verdict.FAIL if available == 0 else short
        yield Finding("address pool", verdict, f"{family}: {available} addresses, low mark {settings.pool_low}")


def _judged(network: Network, answer: str | ProviderError) -> tuple[bool, str]:
    """Return True if a provider can be used, and its answer."""
    if isinstance(answer, ProviderError):
        return False, str(answer)
    return answer == network.chain_identity, f"chain {answer}, expected {network.chain_identity}"


def _name_methods(name: str, lacking: Sequence[str] | ProviderError) -> Iterator[Finding]:
    """Report the methods that a provider lacks; it is used for the others all the same."""
    lines = [f"could not be tried: {lacking}"] if isinstance(lacking, ProviderError) else lacking
    yield from (Finding(name, Verdict.WARN, line) for line in lines)
    if not lines:
        yield Finding(name, Verdict.OK, "all that the scan asks for")


def _judge_providers(network: Network, answers: list[tuple[bool, str]]) -> Iterator[Finding]:
    fallback = any(is_good for is_good, _ in answers)
    bad = Verdict.WARN if fallback else Verdict.FAIL
    for number, (is_good, text) in enumerate(answers, start=1):
        yield Finding(f"{network.code} provider {number}", Verdict.OK if is_good else bad, text)


def _name_one_voice(code: str, urls: Sequence[str]) -> Iterator[Finding]:
    """Report providers of one domain: two keys of one company count as two, though both would repeat the same lie."""
    hosts = [urlsplit(address).hostname or "" for address in {read_node_url(url).address for url in urls}]
    domains = Counter(".".join(host.split(".")[-DOMAIN_LABELS:]) for host in hosts if not _is_number(host))
    for domain, count in sorted(domains.items()):
        if count > 1 and "." in domain:
            harm = "nothing has a second opinion" if count == len(hosts) else "two that agree may be one company"
            text = f"{count} of one domain, {domain}, count as {count}: {harm}"
            yield Finding(f"{code} providers", Verdict.WARN, text)


def _is_number(host: str) -> bool:
    """Return True if a host is an address, not a name."""
    return ":" in host or host.replace(".", "").isdecimal()


def _bad_if(is_bad: bool) -> Verdict:  # noqa: FBT001 - one question, one answer
    return Verdict.FAIL if is_bad else Verdict.OK


def _by_limits(skew_s: float) -> Verdict:
    if skew_s > SKEW_FAIL_S:
        return Verdict.FAIL
    return Verdict.WARN if skew_s > SKEW_WARN_S else Verdict.OK
