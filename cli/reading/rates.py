"""`sluice rates`: shows the market rates and their age. Run by operators."""

from typing import Any, Final

from cli.output import JsonFlag
from cli.reading.fields import show_list
from cli.session import database
from models.db.base import app_now
from models.rates.rates import STALE_AFTER_S
from models.rates.rows import RateRow

COLUMNS: Final = ("currency", "usd", "state", "age_s", "source")


def rates(*, as_json: JsonFlag = False) -> None:
    """Show each currency's rate in US dollars, its age and its source; a stale one prices nothing."""
    with database():
        kept, now = RateRow.read("true ORDER BY currency"), app_now()
    show_list([_document(row, int((now - row.quoted_at).total_seconds())) for row in kept], COLUMNS, as_json=as_json)


def _document(row: RateRow, age_s: int) -> dict[str, Any]:
    state = "stale" if age_s > STALE_AFTER_S else "fresh"
    return {"currency": row.currency, "usd": str(row.usd), "state": state, "age_s": str(age_s), "source": row.source}
