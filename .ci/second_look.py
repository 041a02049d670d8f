# ruff: noqa: INP001 - a script, in no package
"""Repeats the failed tests of the last run one by one, if they are few. Called by .ci/run.

A test that passes alone met a slow machine or another test. It is written to second_looks.txt, which is committed
with the cause, so that a developer mends it. A test that is listed there had its second look and gets no other. More
than a few failures, or none that pytest recorded (it crashed, or could not collect), are no accident and stay red.
"""

import json
import os
import sys
from pathlib import Path

FEW = 5
RECORD = Path(".pytest_cache/v/cache/lastfailed")
LOOKS = Path(__file__).with_name("second_looks.txt")


def looked_at() -> list[str]:
    """Return the tests of second_looks.txt: one a line, with its cause behind two spaces and a #."""
    lines = [line.partition("  #")[0].strip() for line in LOOKS.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def main() -> None:
    """Replace this process by pytest, with the failed tests."""
    failed = sorted(json.loads(RECORD.read_text())) if RECORD.exists() else []
    if not 0 < len(failed) <= FEW:
        sys.exit(f"{len(failed)} tests failed")
    print("failed at first:", *failed, sep="\n  ", flush=True)  # noqa: T201 - for the reader of the log
    if again := sorted({*failed} & {*looked_at()}):
        sys.exit("\n  ".join([f"had a second look before, see {LOOKS.name}:", *again]))
    with LOOKS.open("a") as file:
        file.writelines(f"{name}\n" for name in failed)
    print(f"commit these with their cause in .ci/{LOOKS.name}, or mend them", flush=True)  # noqa: T201 - as above
    os.execv(sys.executable, [sys.executable, "-m", "pytest", "-p", "no:xdist", *failed])  # noqa: S606 - our own program


if __name__ == "__main__":
    main()
