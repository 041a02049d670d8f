"""Checks rules between variables: those of each process, and those of production.

Called only by core.settings.settings.
The rules read the texts of the environment before these become settings, so that one pass finds every problem.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

from core.catalogue.fields import Environment
from core.secrets.secretbox import SecretKeysError, parse_secret_keys
from core.settings.networks import RPC_SUFFIX, network_problems, rpc_variables
from core.settings.node_urls import read_node_url

Role = Literal["web", "worker", "signer", "scheduler", "cli"]
# release migrates, in the environment of any of them.
Start = Literal["web", "worker", "signer", "scheduler", "cli", "release"]

# Published with the source, so it protects no real secret; production refuses it.
DEVELOPMENT_SECRET_KEYS = "development:c2x1aWNlLWRldmVsb3BtZW50LW9ubHkta2V5LTAwMDA="  # noqa: S105

_WALLET_PREFIX = "WALLET_"
_WALLET_SOURCES = ("WALLET_KEYSTORE", "WALLET_KEYSTORE_DATA", "WALLET_MNEMONIC")
_PASSPHRASE_SOURCES = ("WALLET_PASSPHRASE_FILE", "WALLET_PASSPHRASE")
_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})


def problems_of(values: Mapping[str, str], environment: Environment, role: Start) -> Iterator[str]:
    """Yield a line for each problem that forbids to start a process of that role with these variables."""
    yield from network_problems(values, environment)
    yield from _role_problems(values, role)
    if environment == "production":
        yield from _production_problems(values, role)


def split(text: str) -> tuple[str, ...]:
    """Return the entries of a comma separated list."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def holds_development_key(text: str) -> bool:
    """Return True if the published key is among these SECRET_KEYS, under any id."""
    try:
        keys = parse_secret_keys(text)
    except SecretKeysError:
        return False
    return not set(keys.values()).isdisjoint(parse_secret_keys(DEVELOPMENT_SECRET_KEYS).values())


def _role_problems(values: Mapping[str, str], role: Start) -> Iterator[str]:
    if role == "worker" and "ADDRESS_PUBLIC_KEY" not in values:
        yield "ADDRESS_PUBLIC_KEY: is required, or addresses could not be verified"
    if role != "signer":
        return
    sources = [name for name in _WALLET_SOURCES if name in values]
    if len(sources) != 1:
        yield f"{', '.join(_WALLET_SOURCES)}: the signer needs exactly one of them"
    elif sources != ["WALLET_MNEMONIC"] and len([name for name in _PASSPHRASE_SOURCES if name in values]) != 1:
        yield f"{', '.join(_PASSPHRASE_SOURCES)}: the keystore needs exactly one of them"


def _production_problems(values: Mapping[str, str], role: Start) -> Iterator[str]:
    refused = {
        "SECRET_KEYS: holds the development key, which production refuses": holds_development_key(
            values.get("SECRET_KEYS", "")
        ),
        "WALLET_MNEMONIC: production refuses it, use a keystore": "WALLET_MNEMONIC" in values,
        "WEBHOOK_ALLOW_PRIVATE: production refuses it": _is_true(values, "WEBHOOK_ALLOW_PRIVATE"),
        "DEVELOPMENT_DESK_URL: production refuses it": "DEVELOPMENT_DESK_URL" in values,
        "RATES_SOURCE: production refuses static rates": values.get("RATES_SOURCE") == "static",
    }
    yield from (text for text, applies in refused.items() if applies)
    if role not in {"signer", "release"}:
        wallet = (name for name in sorted(values) if name.startswith(_WALLET_PREFIX) and name != "WALLET_MNEMONIC")
        yield from (f"{name}: only the signer may see it" for name in wallet)
    if not _is_true(values, "SINGLE_PROVIDER_OK"):
        lone = (network for network, urls in rpc_variables(values).items() if len(set(_providers(urls))) == 1)
        yield from (f"{n.upper()}{RPC_SUFFIX}: one provider alone needs SINGLE_PROVIDER_OK=1" for n in lone)


def _providers(urls: str) -> Iterator[str]:
    """Yield each URL's provider. An invalid URL counts as its own provider; another rule refuses it."""
    for url in split(urls):
        try:
            yield read_node_url(url).address
        except ValueError:
            yield url


def _is_true(values: Mapping[str, str], name: str) -> bool:
    return values.get(name, "").lower() in _TRUE
