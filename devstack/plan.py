"""Reads the options of `sluice dev` and `sluice demo`, and finds a project's files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.catalogue.catalogue import load_catalogue
from core.catalogue.families import SERVED_FAMILIES
from devstack.chains import is_developed

ROOT: Final = Path(__file__).parents[1]
CACHE: Final = ROOT / ".sluice" / "cache"
DATA_DEFAULT: Final = ROOT / ".sluice" / "dev"
ALL: Final = "all"


class PlanError(ValueError):
    """The command line asks for something that does not exist."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One stack. port None prefers the usual port, 0 takes any."""

    data: Path
    networks: tuple[str, ...]
    port: int | None = None
    ready_file: Path | None = None
    # The file of the project's folder that lists the processes.
    procfile: str = "Procfile"


def parse_networks(text: str) -> tuple[str, ...]:
    """Return the networks of a comma separated list, or all served ones with a development chain. Raises PlanError."""
    networks = load_catalogue("development").networks.values()
    runnable = tuple(one.code for one in networks if is_developed(one.family) and one.family in SERVED_FAMILIES)
    if text == ALL:
        return runnable
    asked = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not asked or not set(asked) <= set(runnable):
        raise PlanError(f"networks are {ALL}, or some of {', '.join(runnable)}")
    return asked
