"""Runs other work while the signer is in the middle of a step."""

from __future__ import annotations

from collections.abc import Callable

from core.logs import checkpoints


def once(label: str, act: Callable[[], object]) -> None:
    """Run work the first time that a label is reached."""
    done: list[str] = []

    def hear(reached: str) -> None:
        if reached == label and not done:
            done.append(reached)
            act()

    checkpoints.listen(hear)
