"""The README's first signed calls work as they are printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.flows.stack import Stack

README = (Path(__file__).parents[3] / "README.md").read_text()


def snippet(language: str, word: str) -> str:
    """Return the README's code block of a language that holds a word."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    [read_one] = [block for block in blocks if word in block]
    return str(read_one)


def run(command: list[str], stack: Stack) -> str:
    env = {"BASE_URL": stack.ready["base_url"], "PUBLIC_ID": stack.ready["public_id"], "SECRET": stack.ready["secret"]}
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, check=True, timeout=30)
    return done.stdout.decode()


def test_the_curl_call_creates_a_payment(stack: Stack) -> None:
    answer = json.loads(run(["sh", "-c", snippet("sh", "curl")], stack))

    assert answer["state"] == 0
    assert answer["result"]["payer_amount"] == "25"
    assert answer["result"]["order_id"] == "order-1042"


def test_the_python_call_creates_a_payment(stack: Stack) -> None:
    printed = run([sys.executable, "-c", snippet("python", "urllib")], stack)

    assert printed.startswith(f"{stack.ready['pay_url']}/pay/")
    assert (
        stack.merchant().get(printed.strip().replace("/pay/", "/v1/pay/").removeprefix(stack.ready["base_url"])).result
    )
