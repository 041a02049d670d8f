"""Notifies the doorbells' actors, and does nothing else: a scheduler has no database and loads no actor."""

import core.logs.lean  # noqa: F401 - before anything loads structlog
