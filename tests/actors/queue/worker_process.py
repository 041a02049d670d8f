"""Runs a worker in its own process, to be killed and stopped: `python -m tests.actors.queue.worker_process`.

At the places that PAUSE_AT names, its actor `work` prints where it is and waits for a line.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence

from actors.queue.caller import CallInfo, CallReply, Record, recorded
from models.db import base
from models.db.base import execute
from tests.actors.queue.workers import declare_call, effects, make_broker, take_effect_together, working

PAUSES = frozenset(os.environ["PAUSE_AT"].split(","))


def say(line: str) -> None:
    """Write a line at once: print writes the line's end by itself, behind another thread's line."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def pause(place: str) -> None:
    if place in PAUSES:
        say(place)
        sys.stdin.readline()


def work(info: CallInfo, payload: bytes) -> CallReply:
    pause("before_begin")
    with recorded(info) as record:
        answer = _effect(record, payload)
        pause("before_commit")
    pause("after_commit")
    return answer


def _effect(record: Record, payload: bytes) -> CallReply:
    execute("INSERT INTO testing.effects (name) VALUES (%s)", (payload.decode(),))
    return record.store({"number": effects()})


def work_together(asked: Sequence[tuple[CallInfo, bytes]]) -> list[CallReply | None]:
    pause("before_statement")
    answers = take_effect_together(asked)
    pause("after_statement")
    return answers


def main() -> None:
    base.connect(os.environ["DATABASE_URL"])
    broker = make_broker(os.environ["REDIS_URL"])
    settle = broker.settle

    def paused_settle(command: str, queue_name: str, *redis_ids: str) -> None:
        pause("before_answers")
        settle(command, queue_name, *redis_ids)

    broker.settle = paused_settle  # type: ignore[method-assign]
    declare_call(broker, work, together=work_together)
    with working(broker, threads=2):
        say("ready")
        threading.Event().wait()


if __name__ == "__main__":
    main()
