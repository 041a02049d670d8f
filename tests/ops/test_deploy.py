"""docs/deploy.md and docs/upgrade.md: their commands, files and variables exist.

As printed they lead from a bare Debian to a paid invoice and a payout, and to another version and back.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import tempfile
import textwrap
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
from typer.main import get_command

from cli.__main__ import build
from core.catalogue.catalogue import load_catalogue
from core.settings.names import known
from devstack.evm import faucet
from devstack.evm.anvil import Anvil
from devstack.evm.chain import EvmChain
from devstack.shop.receiver import Delivery, Receiver
from tests.ops.debian import Debian, Shell, bare_root
from tests.ops.test_units import UNITS

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
BLOCKS: Final = re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
ALL: Final = "\n".join(BLOCKS)
UPGRADE: Final = (ROOT / "docs" / "upgrade.md").read_text(encoding="utf-8")
STEPS: Final = [
    textwrap.dedent(block) for block in re.findall(r"^ *```bash\n(.*?)^ *```", UPGRADE, re.DOTALL | re.MULTILINE)
]
# Reached by the page's own proxy alone.
AUTHORITY: Final = "/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt"
# Units that the page writes. RemoveIPC of hardened.conf, which counts for sluice-*, would end PostgreSQL's memory.
OWN: Final = {"dump-sluice.service", "dump-sluice.timer"}
WEI: Final = 10**18
LIMIT_S: Final = 120.0


def test_the_page_goes_in_the_order_of_its_purpose() -> None:
    steps = (
        "apt-get install",
        "git clone",
        "CREATE DATABASE",
        "secrets new",
        "wallet init",
        "sluice migrate",
        "CREATE ROLE shop_web",
        "systemctl enable --now sluice-web.socket",
        "/etc/caddy/Caddyfile",
        "treasury status",
        "merchant create",
        "/v1/webhooks",
        "/v1/payment ",
        "/v1/payout ",
        "pg_dump",
        "sluice doctor",
    )
    places = [ALL.index(step) for step in steps]

    assert places == sorted(places)


@pytest.mark.parametrize("blocks", [BLOCKS, STEPS], ids=["deploy", "upgrade"])
def test_every_block_is_shell(blocks: list[str]) -> None:
    done = subprocess.run(["bash", "-n"], input="\n".join(blocks), capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_every_variable_of_the_files_is_a_setting() -> None:
    names = set(re.findall(r"^([A-Z_]+)='", ALL, re.MULTILINE)) - {"SHOP"}

    assert names >= {"DATABASE_URL", "REDIS_URL", "BASE_URL", "SECRET_KEYS", "TRUSTED_PROXIES", "SIGNER_RATES"}
    assert names <= known()


def test_every_file_of_settings_is_read_by_a_unit_or_the_command() -> None:
    written = set(re.findall(r"> (/etc/sluice/\S+)", ALL)) | {"/etc/sluice/signer/keystore.json"}
    read = set(re.findall(r"/etc/sluice/[\w/.]+", "\n".join(file.read_text() for file in UNITS.glob("*.service"))))

    assert written == read


def test_every_command_exists() -> None:
    commands = re.findall(r"(?:^|\$\()(?:sluice|\S.*-m cli) (?:\\\n\s+)?([a-z]+)(?: ([a-z]+))?", ALL, re.MULTILINE)
    top: Any = get_command(build())

    assert ("merchant", "create") in commands
    for name, action in commands:
        command = top.commands[name]
        assert not hasattr(command, "commands") or action in command.commands, (name, action)


@pytest.mark.parametrize(("given", "used"), [({}, "owner"), ({"DATABASE_URL": "restored"}, "restored")])
def test_the_command_acts_on_the_database_that_its_caller_names(
    tmp_path: Path, given: dict[str, str], used: str
) -> None:
    [script] = re.findall(r"^cat > /usr/local/sbin/sluice <<'END'\n(.*?)^END", ALL, re.DOTALL | re.MULTILINE)
    (tmp_path / "common.env").write_text("REDIS_URL='redis'\n")
    (tmp_path / "owner.env").write_text("DATABASE_URL='owner'\n")
    script = script.replace("/etc/sluice", str(tmp_path)).replace("cd /opt/sluice", "")
    shown = script.replace("exec .venv/bin/python -m cli", "exec sh -c 'echo \"$DATABASE_URL $REDIS_URL\"'")

    done = subprocess.run(["sh"], input=shown, env=given, capture_output=True, text=True, check=True)

    assert done.stdout.split() == [used, "redis"]


def test_every_unit_exists() -> None:
    units = set(re.findall(r"[\w-]*sluice[\w-]*\.(?:service|socket|target|timer)\b", ALL))

    assert {"sluice-web.socket", "sluice.target"} <= units
    assert {name for name in units if not (UNITS / name).exists()} == OWN


@pytest.fixture
def debian() -> Iterator[Debian]:
    # Not in a private folder: accounts of its own have to reach it.
    folder = Path(tempfile.mkdtemp(prefix="sluice-debian-"))
    folder.chmod(0o755)
    machine = Debian(folder, bare_root(ROOT / ".sluice" / "cache"))
    source = machine.files / "srv" / "sluice.git"
    source.parent.mkdir()
    subprocess.run(["git", "clone", "--quiet", "--bare", "--depth=1", f"file://{ROOT}", str(source)], check=True)
    home = machine.files / "root"
    home.mkdir()
    (home / ".curlrc").write_text(f"cacert = {AUTHORITY}\n")
    try:
        machine.boot()
        yield machine
    finally:
        machine.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def chain(anvil: Callable[..., Anvil]) -> EvmChain:
    pairs = load_catalogue("development").pairs_on("ethereum")
    chain = EvmChain(anvil("ethereum"), pairs=pairs, buyer_key=secrets.token_hex(32))
    chain.equip()
    return chain


def values(chain: EvmChain, receiver: Receiver, recipient: str) -> str:
    """Return the page's first block with the values of this test."""
    given = {
        "DOMAIN": "localhost", "SLUICE_SOURCE": "file:///srv/sluice.git", "ETHEREUM_RPC_URLS": chain.url,
        "SIGNER_RATES": "ETH:3000,POL:0.2", "SHOP": "Tested", "WEBHOOK_URL": receiver.url, "RECIPIENT": recipient,
    }  # fmt: skip
    assert list(given) == re.findall(r"^([A-Z_]+)=", BLOCKS[0], re.MULTILINE)
    return "".join(f"{name}={value}\n" for name, value in given.items())


def answers(output: str) -> list[Any]:
    """Return the JSON objects in an output."""
    decoder, objects, rest = json.JSONDecoder(), [], output
    while (start := rest.find("{")) >= 0:
        value, end = decoder.raw_decode(rest[start:])
        objects.append(value)
        rest = rest[start + end :]
    return objects


def pay(chain: EvmChain, invoice: Any) -> None:
    (pair,) = (one for one in load_catalogue("development").pairs_on("ethereum") if one.currency == "USDT")
    units = Decimal(invoice["payer_amount"]).scaleb(pair.decimals)
    chain.pay(pair, to=invoice["address"], units=int(units))


def received(receiver: Receiver, event: str) -> Delivery:
    deadline = time.monotonic() + LIMIT_S
    while (delivery := receiver.deliveries.get(timeout=deadline - time.monotonic())).event != event:
        pass
    return delivery


def follow(shell: Shell, chain: EvmChain, receiver: Receiver, recipient: str) -> str:
    """Run the page's blocks; return the secret of the webhooks. The chain and the shop are those of a development."""
    shell.run(values(chain, receiver, recipient))
    secret = ""
    for block in BLOCKS[1:]:
        output = shell.run(block)
        if "> /etc/sluice/common.env" in block:
            shell.run("printf 'ENVIRONMENT=development\\nWEBHOOK_ALLOW_PRIVATE=1\\n' >> /etc/sluice/common.env")
        if "treasury status" in block:
            faucet.give(chain.url, re.findall(r"0x[0-9a-fA-F]{40}", output)[0], WEI)
        if "/v1/webhooks" in block:
            endpoint, invoice = answers(output)[-2:]
            secret = endpoint["secret"]
            pay(chain, invoice["result"])
    return secret


@contextmanager
def asking(url: str) -> Iterator[None]:
    """Ask for a page again and again; none may go unanswered."""
    over, failures = threading.Event(), []

    def ask() -> None:
        while not over.wait(0.05):
            try:
                urllib.request.urlopen(url, timeout=60).close()  # noqa: S310 - our own
            except OSError as error:
                failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert failures == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_commands_as_printed_lead_from_a_bare_debian_to_a_payout(debian: Debian, chain: EvmChain) -> None:
    recipient = chain.stranger()
    (pair,) = (one for one in load_catalogue("development").pairs_on("ethereum") if one.currency == "USDT")
    trusted = {"PIP_CERT": "/etc/ssl/certs/ca-certificates.crt"}
    with Receiver() as receiver:
        with debian.shell(**trusted) as shell:
            secret = follow(shell, chain, receiver, recipient)
        assert received(receiver, "invoice.paid").fault(secret, now_s=time.time()) == ""
        assert received(receiver, "payout.confirmed").fault(secret, now_s=time.time()) == ""
    assert chain.balance(pair, recipient) == 5 * 10**pair.decimals

    debian.stop()
    debian.boot()
    with debian.shell(**trusted) as shell:
        shell.run(
            "set -eu\n"
            "curl --silent --fail --retry 60 --retry-delay 1 --retry-all-errors https://localhost/readyz\n"
            "systemctl is-active $(systemctl show --property=Wants --value sluice.target)\n"
            "sleep 5\n"
            "test -z \"$(systemctl --failed --no-legend --plain 'sluice*')\"\n"
            "sluice doctor"
        )
        # To the same version and back: a folder of its own each time.
        shell.run(STEPS[0])
        shell.run("VERSION=$(git -C /opt/sluice branch --show-current)")
        with asking("http://127.0.0.1:8000/healthz"):
            for step in STEPS[1:]:
                shell.run(step)
        shell.run('test "$(readlink --canonicalize /opt/sluice)" = "$PREVIOUS"')
