"""ops/systemd: a unit for each line of the Procfile, with its command; systemd takes each and finds it closed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from devstack.supervise.procfile import read_procfile
from tests.ops.programs import program

ROOT: Final = Path(__file__).parents[2]
UNITS: Final = ROOT / "ops" / "systemd"
HARDENED: Final = UNITS / "sluice-.service.d" / "hardened.conf"
HOME: Final = "/opt/sluice"
SERVICES: Final = sorted(file.name for file in UNITS.glob("*.service"))
RELEASE: Final = "sluice-release.service"
SIGNERS: Final = ["sluice-signer.service", "sluice-small-signer.service"]
ACCOUNTS: Final = {"sluice-web.service": "sluice-web", **dict.fromkeys(SIGNERS, "sluice-signer")}
# The lines of Procfile.small that have a unit of their own.
SMALL: Final = {"worker": "small-worker", "signer": "small-signer"}
# Of 10. systemd calls it OK.
EXPOSURE_MAX: Final = 2.0


def values(file: Path, name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)


def words(file: Path, name: str) -> list[str]:
    return [word for value in values(file, name) for word in value.split()]


def commands(procfile: str) -> dict[str, str]:
    """Return the command of each unit, made from a line of a Procfile; variables are in the unit's settings."""
    lines = {name: re.sub(r"^env WEB_THREADS=8 ", "", text) for name, text in read_procfile(ROOT / procfile).items()}
    small = SMALL if procfile == "Procfile.small" else {}
    return {f"sluice-{small.get(name, name)}.service": f"{HOME}/.venv/bin/{text}" for name, text in lines.items()}


def test_each_line_of_the_procfile_has_a_unit_with_its_command() -> None:
    wanted = (
        commands("Procfile") | commands("Procfile.small") | {RELEASE: f"{HOME}/.venv/bin/python -m cli migrate --json"}
    )

    assert {name: values(UNITS / name, "ExecStart") for name in SERVICES} == {name: [c] for name, c in wanted.items()}


@pytest.mark.parametrize(
    ("target", "procfile"), [("sluice.target", "Procfile"), ("sluice-small.target", "Procfile.small")]
)
def test_a_target_starts_every_line_and_the_address_of_the_web(target: str, procfile: str) -> None:
    assert sorted(words(UNITS / target, "Wants")) == sorted([*commands(procfile), "sluice-web.socket"])
    assert all(target in words(UNITS / name, "PartOf") for name in commands(procfile))


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_its_account_its_settings_a_limit_of_memory_and_comes_back(name: str) -> None:
    file = UNITS / name
    role, is_release = name.removesuffix(".service").rpartition("-")[2], name == RELEASE
    own = role if role in {"web", "signer", "scheduler"} else "owner" if is_release else "worker"

    assert values(file, "User") == [ACCOUNTS.get(name, "sluice")]
    assert values(file, "EnvironmentFile") == ["/etc/sluice/common.env", f"/etc/sluice/{own}.env"]
    assert re.fullmatch(r"\d+M", *values(file, "MemoryMax"))
    assert values(file, "Restart") == ([] if is_release else ["always"])


def test_the_signer_alone_is_given_the_keystore_and_its_passphrase() -> None:
    assert [name for name in SERVICES if "WALLET_" in (UNITS / name).read_text(encoding="utf-8")] == SIGNERS
    assert [name for name in SERVICES if values(UNITS / name, "LoadCredential")] == SIGNERS
    variables = ["WALLET_KEYSTORE=%d/keystore", "WALLET_PASSPHRASE_FILE=%d/passphrase"]
    assert [values(UNITS / name, "Environment") for name in SIGNERS] == [variables] * 2


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units with programs that exist."""
    folder = tmp_path_factory.mktemp("systemd")
    home = folder / "home"
    for name in ("python", "gunicorn"):
        file = home / ".venv" / "bin" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    copy = folder / "units"
    shutil.copytree(UNITS, copy)
    for file in copy.rglob("*.*"):
        if file.is_file():
            file.write_text(file.read_text(encoding="utf-8").replace(HOME, str(home)))
    return copy


def test_systemd_takes_all_units(units: Path) -> None:
    files = [str(file) for file in units.iterdir() if file.is_file()]
    done = subprocess.run(
        [program("systemd-analyze"), "verify", *files], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", SERVICES)
def test_systemd_finds_a_service_closed(name: str, units: Path) -> None:
    done = subprocess.run(
        [program("systemd-analyze"), "security", "--offline=true", "--no-pager", str(units / name)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    (exposure,) = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)

    assert float(exposure) <= EXPOSURE_MAX, done.stdout


@pytest.mark.parametrize(
    "line",
    ["CapabilityBoundingSet=", "NoNewPrivileges=yes", "ProtectSystem=strict", "StartLimitIntervalSec=0", "LimitCORE=0"],
)
def test_all_services_are_closed_in_one_place(line: str) -> None:
    assert line in HARDENED.read_text(encoding="utf-8").splitlines()
