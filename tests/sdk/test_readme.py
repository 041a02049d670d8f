"""The samples of the libraries' pages run as they are printed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sdk.generate import ROOT
from tests.sdk.test_calls import gateway, good, url
from tests.sdk.test_vectors import BODY, EXAMPLE, EXAMPLE_SIGNATURE, NEW, NOW, sent

CLIENTS = (ROOT.parent / "docs" / "clients.md").read_text(encoding="utf-8")


def samples(folder: str, language: str) -> list[str]:
    page = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def test_the_samples_in_python_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    first, hook = samples("python", "python")
    with gateway(good({"url": "https://pay.shop.example/pay/1"})) as server:
        space: dict[str, Any] = {}
        exec(first.replace("https://pay.shop.example", url(server)), space)  # noqa: S102  the sample is under test
        space["sluice"].close()
    assert capsys.readouterr().out == "https://pay.shop.example/pay/1\n"

    space = {}
    monkeypatch.setattr("time.time", lambda: NOW)
    exec(hook, space)  # noqa: S102
    body = b'{"type":"payment","status":"paid","uuid":"1"}'
    assert space["receive"](body, sent("whsec_new", body=body)) == 200
    assert space["receive"](body, sent("whsec_other", body=body)) == 400


def test_the_samples_for_node_run(driver: subprocess.Popen[str], tmp_path: Path) -> None:
    first, hook = (text.replace("sluice-client", str(ROOT / "node/sluice.js")) for text in samples("node", "js"))
    node = str(driver.args[0])  # type: ignore[index]
    script = tmp_path / "sample.mjs"
    with gateway(good({"url": "https://pay.shop.example/pay/1"})) as server:
        script.write_text(first.replace('"https://pay.shop.example"', f'"{url(server)}"'))
        assert subprocess.check_output([node, str(script)], text=True) == "https://pay.shop.example/pay/1\n"

    headers = [sent("whsec_new"), sent("whsec_other")]
    lines = [f"Date.now = () => {NOW}000;", hook]
    lines += [f"console.log(receive({json.dumps(BODY.decode())}, {json.dumps(each)}));" for each in headers]
    script.write_text("\n".join(lines))
    assert subprocess.check_output([node, str(script)], text=True).split() == [
        "payment",
        "undefined",
        "undefined",
        "200",
        "400",
    ]


def test_the_page_has_the_worked_example() -> None:
    secret, timestamp, _, _, body = EXAMPLE

    assert all(part in CLIENTS for part in (secret, timestamp, body, EXAMPLE_SIGNATURE))
    assert NEW not in CLIENTS


def test_a_script_without_the_house_imports_the_library(tmp_path: Path) -> None:
    code = "import sluice_client, sys; print(sorted({'msgspec', 'falcon', 'core'} & {*sys.modules}))"
    code = f"import sys; sys.path.append({str(ROOT / 'python')!r}); {code}"
    assert subprocess.check_output([sys.executable, "-I", "-S", "-c", code], cwd=tmp_path) == b"[]\n"
