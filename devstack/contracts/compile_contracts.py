"""Compiles the contracts here into contracts.json, which is committed. Run by a developer who changed a contract.

Needs vyper 0.4.3 on PATH (from an environment of its own): python -m devstack.contracts.compile_contracts
"""

import json
import subprocess
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
WANTED: Final = "abi,bytecode_runtime,layout"


def compiled(source: Path) -> dict[str, object]:
    """Return a contract's ABI, runtime code and the storage slot of each variable."""
    # The compiler is looked for on PATH: a developer's own tool, never the product's.
    run = subprocess.run(["vyper", "-f", WANTED, source.name], cwd=HERE, check=True, capture_output=True, text=True)  # noqa: S607
    abi, runtime, layout = run.stdout.strip().splitlines()
    variables = json.loads(layout).get("storage_layout", {})
    return {
        "abi": json.loads(abi),
        "runtime": runtime,
        "slots": {name: variable["slot"] for name, variable in variables.items()},
    }


if __name__ == "__main__":
    contracts = {source.stem: compiled(source) for source in sorted(HERE.glob("*.vy"))}
    (HERE / "contracts.json").write_text(json.dumps(contracts, indent=1, sort_keys=True) + "\n")
