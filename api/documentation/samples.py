"""Writes each operation's sample for curl, Python and Node. Called by reference.

All use the sample key `pk_test` with the secret `sk_test_123`; a signature for curl is right for its printed timestamp.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from core.secrets.signing import sign_request

PUBLIC_ID: Final = "pk_test"
SECRET: Final = "sk_test_123"  # noqa: S105  the documentation's, which no gateway knows
TIMESTAMP: Final = "1700000000"
_PLACE: Final = re.compile(r"\{(\w+)\}")


def samples(operation: Mapping[str, Any], method: str, path: str, *, base_url: str) -> dict[str, str]:
    """Return an operation's samples by language. `operation` is that of the description, with its example."""
    example, values = operation["example"], operation["values"]
    target = _PLACE.sub(lambda place: values[place[1]], path)
    return {
        "curl": _curl(method, target, example, base_url=base_url, is_signed=operation["is_signed"]),
        "Python": _python(operation["name"], path, example, values, base_url=base_url),
        "Node": _node(operation["name"], path, example, values, base_url=base_url),
    }


def _curl(method: str, target: str, example: Any, *, base_url: str, is_signed: bool) -> str:
    lines = [f"curl {base_url}{target}"]
    body = b"" if example is None else json.dumps(example, ensure_ascii=False, separators=(",", ":")).encode()
    if is_signed:
        signature = sign_request(SECRET, TIMESTAMP, method, target, body)
        headers = {"X-Public-Id": PUBLIC_ID, "X-Timestamp": TIMESTAMP, "X-Signature": signature}
        lines += [f"-H '{name}: {value}'" for name, value in headers.items()]
    if example is not None:
        lines += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(body.decode())}"]
    return " \\\n  ".join(lines)


def _python(name: str, path: str, example: Any, values: Mapping[str, str], *, base_url: str) -> str:
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    arguments = [repr(values[place]) for place in _PLACE.findall(path)]
    arguments += [f"{field}={value!r}" for field, value in (example or {}).items()]
    call = ", ".join(arguments)
    if len(call) > len("sluice.") * 8:
        call = "\n    " + ",\n    ".join(arguments) + ",\n"
    opened = f'sluice = Sluice("{base_url}", "{PUBLIC_ID}", "{SECRET}")'
    return f"from sluice_client import Sluice\n\n{opened}\nprint(sluice.{snake}({call}))\n"


def _node(name: str, path: str, example: Any, values: Mapping[str, str], *, base_url: str) -> str:
    arguments = [json.dumps(values[place]) for place in _PLACE.findall(path)]
    arguments += [] if example is None else [json.dumps(example, ensure_ascii=False, indent=2)]
    opened = f'const sluice = new Sluice({{ url: "{base_url}", publicId: "{PUBLIC_ID}", secret: "{SECRET}" }});'
    called = f"console.log(await sluice.{name}({', '.join(arguments)}));"
    return f'import {{ Sluice }} from "sluice-client";\n\n{opened}\n{called}\n'
