"""Finds the variables of a command: the process's own, else those of a development stack. Called by cli.session."""

import os
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Final

# With one of these, a command was given its own gateway.
STORES: Final = ("DATABASE_URL", "REDIS_URL")
# No part of a wheel.
_DEVSTACK: Final = "devstack.running.state:settings_here"


def variables() -> Mapping[str, str]:
    """Return the process's variables; those of this machine's development stack where they name no gateway.

    Raises CommandError for a stack that may not be used.
    """
    if any(os.environ.get(name, "").strip() for name in STORES) or not _is_development(os.environ):
        return os.environ
    try:
        beside: Callable[[Mapping[str, str]], Mapping[str, str] | None] = resolve_name(_DEVSTACK)
    except ModuleNotFoundError:
        return os.environ
    return beside(os.environ) or os.environ


def _is_development(environ: Mapping[str, str]) -> bool:
    return environ.get("ENVIRONMENT", "").strip() in {"", "development"}
