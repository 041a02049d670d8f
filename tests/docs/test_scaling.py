"""docs/scaling.md: every line has a row, and its connections and metrics are the gateway's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from devstack.supervise.procfile import read_procfile
from tests.docs.test_platforms import connections

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
ROWS: Final = [
    row.strip("| ").split(" | ") for row in PAGE.partition("## What a payment")[0].splitlines() if row.startswith("| `")
]


def test_every_line_of_the_procfile_has_a_row_with_its_connections() -> None:
    listed = {row[0].strip("`"): int(row[-1].split()[0]) for row in ROWS}

    assert listed == {name: connections(command) for name, command in read_procfile(ROOT / "Procfile").items()}
    assert all(len(row) == 5 and all(row) for row in ROWS)


def test_the_metrics_that_it_names_exist() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "api" / "health").glob("*.py"))
    named = set(re.findall(r"sluice_[a-z_]+", PAGE)) - {"sluice_readonly"}

    assert len(named) > 6
    assert {name for name in named if name not in source and name.removesuffix("_total") not in source} == set()


def test_the_sum_of_connections_is_that_of_the_procfile() -> None:
    (sizes,) = re.findall(r"^\| connections to PostgreSQL \| (\d+), small (\d+) \| (\d+) \|", PAGE, re.MULTILINE)
    whole, small = (
        sum(map(connections, read_procfile(ROOT / name).values())) for name in ("Procfile", "Procfile.small")
    )

    assert [int(text) for text in sizes] == [whole, small, whole + connections("gunicorn")]
