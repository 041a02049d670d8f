"""Loads structlog without rich, whose 4 MB in each process would format tracebacks that core.logs.log formats plainly.

Imported by the packages that processes start in, before anything else loads structlog.
"""

from __future__ import annotations

import sys

if not {"rich", "structlog"} & sys.modules.keys():
    # Makes `import rich` fail while structlog loads.
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: F401 - loaded, not used
    finally:
        del sys.modules["rich"]
