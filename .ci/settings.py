# ruff: noqa: INP001 - a script, in no package
"""Writes docs/settings.md and .env.example from Settings. Called by `make settings`; a test compares both files."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from core.catalogue.catalogue import Network, load_catalogue
from core.catalogue.fields import Environment
from core.rates.sources import load_sources
from core.settings.defaults import DEFAULTS
from core.settings.meanings import ALL, GROUPS, Meaning
from core.settings.names import NETWORK, SOURCE, networks_with, variables
from core.settings.settings import Settings

ROOT = Path(__file__).parents[1]
PAGE, EXAMPLE = ROOT / "docs" / "settings.md", ROOT / ".env.example"
FIELDS = Settings.model_fields
REQUIRED = "required"
# Defaults that follow from other settings: in production, in development.
DERIVED: Mapping[str, tuple[str, str]] = {
    "ENVIRONMENT": ("production", "production"),
    "BASE_URL": (REQUIRED, "`http://127.0.0.1:PORT`"),
    "BIND": ("`0.0.0.0`", "`127.0.0.1`"),
    "PAY_URL": ("`BASE_URL`", "`BASE_URL`"),
    "REDIS_TLS": ("verify", "verify"),
    "CALL_SLOTS": ("three quarters of `WEB_THREADS`",) * 2,
    "READ_SLOTS": ("three quarters of `WEB_THREADS`",) * 2,
    "MAIL_FROM": ("`no-reply` at the host of `PAY_URL`",) * 2,
    "SIGNER_RATES": ("USDT, USDC and DAI at 1",) * 2,
    "RATES_<SOURCE>_URL": ("the public one",) * 2,
    "<NETWORK>_EXPLORER_URL": ("the catalogue's", "none"),
}
# The figure of a network in the catalogue, by the end of a variable's name.
CATALOGUES = {
    "_GAS_CAP_GWEI": lambda network: network.family_parameters.fee_cap,
    "_FEE_CAP": lambda network: network.family_parameters.fee_cap,
    "_CONFIRMATIONS": lambda network: network.confirmations,
    "_JOIN_SAT_VB": lambda network: network.family_parameters.join_sat_vb,
}
HEAD = """# Settings

This page is made by `make settings` from `Settings`, as is [.env.example](../.env.example), a file to begin with. A process reads its variables once, at its start, and names all problems together. A blank variable counts as absent. Production's rules apply unless `ENVIRONMENT` is `development`. `sluice doctor` names variables that resemble one of these, and have no effect.

Processes are those that a variable changes: `web`; `worker`, each queue but the signer's; `signer`; `scheduler`; `cli`, operators' commands. Variables for others do no harm, except `WALLET_…`, which in production only the signer may see. `<NETWORK>` is a code of the [catalogue](../core/catalogue/catalogue.json) in capitals, `<SOURCE>` one of the [sources of rates](../core/rates/rate_sources.json). Subjects are explained in [operations](operations.md), [treasury](treasury.md), [payouts](payouts-operations.md) and [e-mails](emails.md).
"""  # noqa: E501 - a paragraph is a line
EXAMPLE_HEAD = """# Variables to begin with. docs/settings.md has the whole table; `make settings` writes both.
# A variable behind "#" shows its default in production: remove the "#" to set it. Those without "#" are required."""


def main() -> None:
    """Write both files."""
    PAGE.write_text(page(), encoding="utf-8")
    EXAMPLE.write_text(example(), encoding="utf-8")


def page() -> str:
    """Return the page of all settings."""
    return "\n".join([HEAD, *(f"{_section(title, rows)}\n" for title, rows in GROUPS.items())])


def _section(title: str, rows: Mapping[str, Meaning]) -> str:
    lines = [f"## {title}", "", "| Variable | Meaning | Values | Default | Processes |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(_row(name, meaning) for name, meaning in rows.items())])


def _row(name: str, meaning: Meaning) -> str:
    roles = "all" if meaning.roles == ALL else ", ".join(f"`{role}`" for role in meaning.roles)
    return f"| `{name}` | {meaning.text} | {values(name)} | {both_defaults(name)} | {roles} |"


def both_defaults(name: str) -> str:
    """Return a variable's default, and development's if it differs."""
    ours, theirs = default(name, "production"), default(name, "development")
    return ours if ours == theirs else f"{ours} (development: {theirs})"


def default(name: str, environment: Environment) -> str:
    """Return a variable's default in an environment, as text."""
    if name in DERIVED:
        return DERIVED[name][environment == "development"]
    if name.startswith(NETWORK) and name.removeprefix(NETWORK) in CATALOGUES:
        return _catalogues(name.removeprefix(NETWORK))
    if name in DEFAULTS[environment]:
        return "the published key" if name == "SECRET_KEYS" else DEFAULTS[environment][name]
    field = FIELDS[variables()[name]]
    return REQUIRED if field.is_required() else _shown(field.get_default(call_default_factory=True))


def _catalogues(suffix: str) -> str:
    """Return the catalogue's figures; those of networks whose family has another name for them are left out."""
    networks: Mapping[str, Network] = load_catalogue("production").networks
    codes = [code for code in networks_with(suffix) if suffix != "_FEE_CAP" or not _alias(networks[code])]
    return ", ".join(f"{code} {CATALOGUES[suffix](networks[code])}" for code in codes)


def _alias(network: Network) -> str:
    return network.family_parameters.FEE_CAP_ALIAS


def _shown(value: object) -> str:
    match value:
        case bool():
            return str(int(value))
        case float():
            return f"{value:g}"
        case None | "" | () | Mapping():
            return "none"
        case _:
            return str(value)


def values(name: str) -> str:
    """Return the values that a variable may have, as far as its type says them."""
    field = FIELDS[variables()[name]]
    kinds = [field.annotation, *get_args(field.annotation)]
    chosen = [_code(choice) for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    if chosen:
        return ", ".join(chosen)
    if field.annotation is bool:
        return "0, 1"
    span = _span(field.metadata)
    return ", ".join(part for part in (span, "" if field.repr else "secret") if part)


def _code(choice: object) -> str:
    return f"`{choice}`"


def _span(limits: list[Any]) -> str:
    """Return the range of a number."""
    lowest = next((str(row.ge) for row in limits if hasattr(row, "ge")), "")
    above = next((f"above {row.gt}" for row in limits if hasattr(row, "gt")), "")
    highest = next((str(row.le) for row in limits if hasattr(row, "le")), "")
    if lowest and highest:
        return f"{lowest} to {highest}"
    return ", ".join(
        part
        for part in (above, f"at least {lowest}" if lowest else "", f"at most {highest}" if highest else "")
        if part
    )


def example() -> str:
    """Return the file of variables to begin with."""
    blocks = [line for title, rows in GROUPS.items() for line in ("", *_block(title, rows))]
    return "\n".join([EXAMPLE_HEAD, *blocks, ""])


def _block(title: str, rows: Mapping[str, Meaning]) -> Iterator[str]:
    yield f"# --- {title}"
    for name, meaning in rows.items():
        yield f"# {meaning.text}"
        yield _assignment(name)


def _assignment(name: str) -> str:
    """Return the line of a variable: only one that is required is set, to a blank."""
    text, suffix = default(name, "production"), name.removeprefix(NETWORK)
    if text == REQUIRED:
        return f"{name}="
    if suffix in CATALOGUES:
        code, _, figure = _catalogues(suffix).partition(",")[0].partition(" ")
        return f"#{code.upper()}{suffix}={figure}"
    one = name.replace(NETWORK, networks_with(suffix)[0].upper()).replace(SOURCE, next(iter(load_sources())).upper())
    return f"#{one}={'' if name in DERIVED or text == 'none' else text}"


if __name__ == "__main__":
    main()
