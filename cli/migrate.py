"""`sluice migrate`: brings the database's tables up to this version. Run at every release, before the processes."""

from typing import Annotated

import typer

from cli.output import JsonFlag, show
from cli.session import open_settings
from cli.shell.progress import progress
from models.db import migrate as db_migrate


def migrate(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what is pending, and change nothing.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Apply pending migrations; several machines may do so at once. A login that may not succeeds if none is pending.

    A database that a newer version has migrated is left as it is: this version serves it.
    """
    settings = open_settings("release")
    pending, unknown = db_migrate.survey(settings.database_url)
    newer = [f"the database is of a newer version, which has {', '.join(unknown)}"] if unknown else []
    if dry_run:
        lines = [f"pending {name}" for name in pending] or ["nothing is pending"]
        show({"pending": pending, "newer": unknown}, [*lines, *newer], as_json=as_json)
        return
    with progress(f"migration: {len(pending)} pending"):
        applied = db_migrate.migrate(settings.database_url, is_production=settings.environment == "production")
    lines = [f"applied {name}" for name in applied] or ["nothing to apply"]
    show({"applied": applied, "newer": unknown}, [*lines, *newer], as_json=as_json)
