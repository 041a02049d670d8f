"""Reads the recorded acts of operators."""

from models.db.base import rows


def acted() -> list[tuple[str, str]]:
    """Return the acts so far with their subjects, oldest first."""
    return rows("SELECT act, subject FROM operator_acts ORDER BY id")
