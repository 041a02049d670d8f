# ruff: noqa: INP001 - a script, in no package
"""Runs the tests again that failed in the run before, one by one, if they are few. Called by .ci/run.

A test that passes alone met a slow machine or another test: it is named, so that somebody mends it. More than a few
failures, or none that pytest recorded (it crashed, or could not collect), are no accident and stay red.
"""

import json
import os
import sys
from pathlib import Path

FEW = 5
RECORD = Path(".pytest_cache/v/cache/lastfailed")


def main() -> None:
    """Replace this process by pytest on what failed."""
    failed = sorted(json.loads(RECORD.read_text())) if RECORD.exists() else []
    if not 0 < len(failed) <= FEW:
        sys.exit(f"{len(failed)} tests failed")
    print("failed at first:", *failed, sep="\n  ", flush=True)  # noqa: T201 - it is for whoever reads the log
    os.execv(sys.executable, [sys.executable, "-m", "pytest", "-p", "no:xdist", *failed])  # noqa: S606 - our own program


if __name__ == "__main__":
    main()
