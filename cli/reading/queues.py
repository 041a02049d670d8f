"""`sluice queues`: shows the messages that wait in each queue, and the processes that serve it. Run by operators."""

from typing import Any

from actors.queue.broker import SluiceBroker, make_broker
from actors.queue.registry import QUEUES
from cli.output import JsonFlag, show
from cli.session import open_settings
from models.db import after_commit


def queues(*, as_json: JsonFlag = False) -> None:
    """Show each queue: its messages, the age of the oldest, its processes. 0 processes: start them (Procfile)."""
    broker = make_broker(open_settings(), client_name="sluice-cli")
    try:
        documents = [_document(broker, queue) for queue in QUEUES]
    finally:
        after_commit.use(None)
        broker.link.close()
    lines = [
        f"{each['queue']}: {each['waiting']} wait, the oldest for {each['oldest_s']} s, processes {each['processes']}"
        for each in documents
    ]
    show({"items": documents}, lines, as_json=as_json)


def _document(broker: SluiceBroker, queue: str) -> dict[str, Any]:
    backlog = broker.backlog(queue)
    return {
        "queue": queue,
        "waiting": backlog.waiting,
        "oldest_s": backlog.oldest_ms // 1000,
        "processes": broker.heartbeats.consumers(queue),
    }
