"""Finds programs of the machine. A missing one skips its tests, and fails them in the continuous integration."""

from __future__ import annotations

import os
import shutil

import pytest


def program(name: str) -> str:
    """Return a program's path; skip the test if the machine lacks it."""
    path = shutil.which(name)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed")
    return path
