"""`sluice migrate`: brings the database's tables up to this version. Run at every release, before the processes."""

from cli.output import JsonFlag, show
from cli.session import open_settings
from models.db import migrate as db_migrate


def migrate(*, as_json: JsonFlag = False) -> None:
    """Apply pending migrations; several machines may do so at once."""
    settings = open_settings()
    applied = db_migrate.migrate(settings.database_url, is_production=settings.environment == "production")
    show({"applied": applied}, [f"applied {name}" for name in applied] or ["nothing to apply"], as_json=as_json)
