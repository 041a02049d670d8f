"""`sluice acts`: lists operators' acts. Run by operators."""

from typing import Annotated, Any

import typer

from cli.output import JsonFlag, show
from cli.session import database
from models.ledger import acts
from models.ledger.acts import LIST_MAX, Act


def list_acts(limit: Annotated[int, typer.Option(min=1, max=LIST_MAX)] = 50, *, as_json: JsonFlag = False) -> None:
    """List operators' acts, newest first: who did what, when and why."""
    with database():
        listed = acts.listing(limit=limit)
    show({"items": [_document(act) for act in listed]}, [_line(act) for act in listed] or ["none"], as_json=as_json)


def _document(act: Act) -> dict[str, Any]:
    return {
        "act": act.act, "subject": act.subject, "details": act.details, "reason": act.reason, "by": act.done_by,
        "at": act.done_at.isoformat(),
    }  # fmt: skip


def _line(act: Act) -> str:
    details, reason = f" ({act.details})" if act.details else "", f": {act.reason}" if act.reason else ""
    return f"{act.done_at.isoformat()}  {act.done_by}  {act.act} {act.subject}{details}{reason}"
