"""Containerfile, compose.yaml and docs/containers.md: the commands of Procfile.small, and settings that exist."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from core.settings.names import known
from devstack.supervise.procfile import read_procfile

ROOT: Final = Path(__file__).parents[2]
SERVICES: Final[dict[str, Any]] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
LINES: Final = read_procfile(ROOT / "Procfile.small") | {"release": "python -m cli migrate"}
PAGE: Final = (ROOT / "docs" / "containers.md").read_text(encoding="utf-8")
BLOCKS: Final = re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_each_line_is_a_service_with_its_command() -> None:
    assert {name: row["command"] for name, row in SERVICES.items() if name in LINES} == LINES
    assert SERVICES.keys() - LINES.keys() == {"postgres", "redis", "proxy"}


@pytest.mark.parametrize("name", LINES)
def test_a_service_is_closed_and_has_settings_of_its_own(name: str) -> None:
    service, own = SERVICES[name], "owner" if name == "release" else name

    assert service["env_file"] == ["settings/common.env", f"settings/{own}.env"]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert ("secrets" in service) == (name == "signer")


def test_the_image_has_every_package_of_a_wheel_and_the_servers_settings() -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {each.rstrip("*") for each in project["tool"]["setuptools"]["packages"]["find"]["include"]}

    assert set(re.findall(r"^COPY (\w+) \1$", text, re.MULTILINE)) == packages
    assert "COPY gunicorn.conf.py ." in text
    assert re.findall(r"^USER (\w+)$", text, re.MULTILINE) == ["sluice"]


def test_the_page_is_shell_and_writes_every_file_of_settings() -> None:
    text = "\n".join(BLOCKS)
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    written = set(re.findall(r"(?:>|--keystore) (?:/wallet/|settings/signer/|settings/)([\w.]+)", text))
    read = {Path(file).name for row in SERVICES.values() for file in row.get("env_file", [])}

    assert (done.returncode, done.stderr) == (0, "")
    assert written == read | {"keystore.json", "passphrase", "postgres", "redis"}


def test_the_proxy_reaches_the_web_alone() -> None:
    networks = {name: set(row["networks"]) for name, row in SERVICES.items()}

    assert networks.pop("proxy") == {"front"}
    assert networks.pop("web") == {"front", "back"}
    assert {frozenset(each) for each in networks.values()} == {frozenset({"back"})}
    assert SERVICES["redis"]["command"] == "valkey-server /run/secrets/redis"
    assert "requirepass" in PAGE


def test_no_log_keeps_the_words_and_no_list_of_processes_shows_the_passphrase() -> None:
    runs = [run for run in re.findall(r"docker run(?:\\\n|.)*", PAGE) if re.search(r"wallet init|secrets new", run)]

    assert len(runs) == 2
    assert all("--log-driver none" in run and "cat " not in run for run in runs)


def test_every_variable_of_the_files_is_a_setting() -> None:
    names = set(re.findall(r"^(?:echo \")?([A-Z_]+)=", "\n".join(BLOCKS[2:]), re.MULTILINE))

    assert names >= {"DATABASE_URL", "REDIS_URL", "BASE_URL", "TRUSTED_PROXIES", "SIGNER_RATES"}
    assert names <= known()
