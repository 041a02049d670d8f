"""Turns the text of a variable into a value, or says what is wrong with it. The types of core.settings.settings."""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from types import MappingProxyType
from typing import Annotated, Final, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from core.money import PPM_DIGITS, parse_units
from core.secrets.secretbox import SecretKeysError, parse_secret_keys
from core.settings.node_urls import read_node_url
from core.settings.redis_tls import AUTHORITY, UNVERIFIED, VERIFY
from core.settings.rules import split

T = TypeVar("T")
# The place of a transaction's id in an explorer's URL, and the word for "no explorer".
TXID: Final = "{txid}"
NONE: Final = "none"
# Before the path of a socket in the file system.
UNIX: Final = "unix:"
# Tolerances in force are within 1 and 5 percent (API reference, Limits).
TOLERANCE_MIN_PPM: Final = 10_000
TOLERANCE_MAX_PPM: Final = 50_000


def decimal_text(digits: int, *, highest: int) -> AfterValidator:
    """Validate a decimal number, which stays text; callers convert it to whole units."""

    def check(text: str) -> str:
        if parse_units(text, digits=digits, error=ValueError, name="it") > highest * 10**digits:
            raise ValueError(f"must be at most {highest}")
        return text

    return AfterValidator(check)


def _split(text: object) -> object:
    return split(text) if isinstance(text, str) else text


def _networks(text: object) -> object:
    try:
        return tuple(ip_network(part) for part in split(text)) if isinstance(text, str) else text
    except ValueError:
        raise ValueError("must be addresses and networks like 10.0.0.0/8, separated by commas") from None


def _url_check(*schemes: str) -> AfterValidator:
    def check(url: str) -> str:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in schemes and (parts.hostname or parts.path) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError(f"must be a URL that starts with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        return url.rstrip("/")

    return AfterValidator(check)


def _check_dsn(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme in {"http", "https"} and parts.username and parts.hostname and parts.path.strip("/"):
        return text
    raise ValueError("must be https://key@host/project")


def _check_node_url(text: str) -> str:
    read_node_url(text)
    return text


def _check_secret_keys(text: str) -> str:
    try:
        parse_secret_keys(text)
    except SecretKeysError as error:
        raise ValueError(f"must be kid:base64key,… ({error})") from None
    return text


def _check_explorer(text: str) -> str:
    parts = urlsplit(text)
    if text == NONE or (parts.scheme in {"http", "https"} and parts.hostname and text.count(TXID) == 1):
        return text
    raise ValueError(f"must be a URL of a transaction's page with {TXID} in it, or {NONE}")


def _check_bind(text: str) -> str:
    try:
        return text if text.startswith(f"{UNIX}/") else str(ip_address(text))
    except ValueError:
        raise ValueError(f"must be an address like 127.0.0.1, or {UNIX}/path") from None


def _check_tls(text: str) -> str:
    if text in {VERIFY, UNVERIFIED} or text.startswith(f"{AUTHORITY}/"):
        return text
    raise ValueError(f"must be {VERIFY}, {UNVERIFIED}, or {AUTHORITY}/path of a file of certificates")


def _freeze_figures(figures: Mapping[str, Mapping[str, int]]) -> Mapping[str, Mapping[str, int]]:
    return MappingProxyType({code: MappingProxyType(dict(values)) for code, values in figures.items()})


def _check_tolerance(text: str) -> str:
    """Validate a percentage within the API's limits of tolerances, or 0 for no tolerance."""
    ppm = parse_units(text, digits=PPM_DIGITS, error=ValueError, name="it")
    if ppm and not TOLERANCE_MIN_PPM <= ppm <= TOLERANCE_MAX_PPM:
        raise ValueError("must be 0, or 1 to 5")
    return text


BindText = Annotated[str, AfterValidator(_check_bind)]
HttpUrl = Annotated[str, _url_check("http", "https")]
DatabaseUrl = Annotated[str, _url_check("postgresql", "postgres")]
RedisUrl = Annotated[str, _url_check("redis", "rediss", "unix")]
RedisTls = Annotated[str, AfterValidator(_check_tls)]
MailServerUrl = Annotated[str, _url_check("smtp", "smtps")]
NodeUrls = Annotated[
    tuple[Annotated[str, AfterValidator(_check_node_url)], ...],
    BeforeValidator(_split),
    Field(min_length=1, max_length=8),
]
SourceNetworks = Annotated[tuple[IPv4Network | IPv6Network, ...], BeforeValidator(_networks)]
SecretKeysText = Annotated[str, AfterValidator(_check_secret_keys)]
ToleranceText = Annotated[str, AfterValidator(_check_tolerance)]
SentryDsn = Annotated[str, AfterValidator(_check_dsn)]
ExplorerText = Annotated[str, AfterValidator(_check_explorer)]
ContractText = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]

# A read-only mapping by the code of a network, a coin or a source.
ByCode = Annotated[Mapping[str, T], AfterValidator(MappingProxyType)]
Figures = Annotated[Mapping[str, Mapping[str, Annotated[int, Field(ge=0)]]], AfterValidator(_freeze_figures)]
