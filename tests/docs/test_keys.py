"""docs/keys.md: every secret has a rotation, the paths lead to our addresses, and the commands exist."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from embit import bip32, bip39
from typer.main import get_command

from chains.keys import Keys
from chains.slip10 import Node
from cli.__main__ import build
from core.catalogue.catalogue import load_catalogue
from core.catalogue.families import SERVED_FAMILIES
from core.settings.settings import Settings
from models.outcomes import resealing
from models.queue import calls

PAGE: Final = (Path(__file__).parents[2] / "docs" / "keys.md").read_text(encoding="utf-8")
MNEMONIC: Final = "abandon " * 11 + "about"
PATHS: Final = re.findall(r"^\| (\w+) \| `(m/\S+)` \| `(m/\S+)` \|", PAGE, re.MULTILINE)
# As the page names what is set by network or source.
NAMES: Final = {"rpc_urls": "<NETWORK>_RPC_URLS", "rates_urls": "RATES_*_URL"}


def rotation() -> str:
    return PAGE.partition("## Rotation")[2].partition("### ")[0]


def test_every_secret_of_the_settings_has_a_rotation() -> None:
    secret = [name for name, field in Settings.model_fields.items() if not field.repr]

    assert len(secret) > 8
    assert [name for name in secret if f"`{NAMES.get(name, name.upper())}`" not in rotation()] == []


def address(family: str, public: bytes) -> str:
    keys: Any = import_module(f"chains.{family}.keys")
    schemes = {"bitcoin": lambda: keys._scheme("main"), "ton": lambda: keys._scheme(is_test=False)}
    return str(schemes.get(family, lambda: keys.SCHEME)().address(public))


def public_key(family: str, path: str) -> bytes:
    seed = bip39.mnemonic_to_seed(MNEMONIC)
    if family in {"solana", "ton"}:
        steps = path.removeprefix("m/").split("/")
        assert all(step.endswith("h") for step in steps)
        return Node.root(seed).child(*(int(step[:-1]) for step in steps)).public()
    return bytes(bip32.HDKey.from_seed(seed).derive(path).key.sec())


def test_every_family_has_its_paths() -> None:
    assert {family for family, *_ in PATHS} == SERVED_FAMILIES


@pytest.mark.parametrize(("family", "deposit", "hot"), PATHS)
def test_the_paths_lead_to_our_addresses(family: str, deposit: str, hot: str) -> None:
    keys = Keys(MNEMONIC)
    network = next(n for n in load_catalogue("production").networks.values() if n.family == family)

    seventh = re.sub(r"i(h?)$", r"7\1", deposit)
    assert (address(family, public_key(family, seventh)),) == keys.deposit_addresses(network, (7,))
    assert address(family, public_key(family, hot)) == keys.hot_address(network)


def test_the_commands_of_the_page_exist_with_their_options() -> None:
    known: dict[tuple[str, str], Any] = {
        (group, name): command
        for group, entry in get_command(build()).commands.items()
        for name, command in getattr(entry, "commands", {}).items()
    }
    for group, name, rest in re.findall(r"sluice (wallet|secrets|key|payouts) ([a-z]+)([^`\n]*)", PAGE):
        options = {option for parameter in known[group, name].params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= options, f"{group} {name}{rest}"


def test_the_figures_of_the_page_are_the_codes() -> None:
    assert f"batches of {resealing.BATCH_MAX}," in PAGE
    assert f"Wait for {calls.KEPT_DAYS} days" in PAGE
