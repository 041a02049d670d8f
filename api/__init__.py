"""The HTTP side: authenticates, validates, calls an actor or reads PostgreSQL, answers. It holds no domain rules."""

import core.logs.lean  # noqa: F401 - before anything loads structlog
