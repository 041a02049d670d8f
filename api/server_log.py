"""Sends gunicorn's own lines through the log of core.logs.log. Named in gunicorn.conf.py, for master and workers."""

from __future__ import annotations

from typing import Any

from gunicorn.glogging import Logger  # type: ignore[import-untyped]


class ServerLog(Logger):  # type: ignore[misc]
    """Gunicorn's logger without handlers of its own."""

    def setup(self, cfg: Any) -> None:
        """Hand every line to the process's one handler."""
        super().setup(cfg)
        for logger in (self.error_log, self.access_log):
            logger.handlers.clear()
            logger.propagate = True
