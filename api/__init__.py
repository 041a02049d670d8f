"""The HTTP side: authenticates, validates, calls an actor or reads PostgreSQL, answers. Domain rules live elsewhere."""

import core.logs.lean  # noqa: F401 - before anything loads structlog
