"""One workflow a file. Everything with an effect runs here, off the queue, one PostgreSQL transaction a step."""

import core.logs.lean  # noqa: F401 - before anything loads structlog
