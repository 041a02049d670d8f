"""Configures logging, once per process, for our events and for those of every library. Called by entry points.

One line per event on stderr: JSON in production, readable in development. Every line passes core.logs.redact. Code logs
with `structlog.get_logger()`, an event name with dots and keyword facts.
"""

import logging
import os
import sys
import threading
from types import TracebackType
from typing import Final, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from core.logs import counters
from core.logs.redact import Redactor, secrets_of
from core.logs.reports import Report, reporting
from core.settings.settings import Settings

# They log each job or connection at INFO, which drowns important events.
_CHATTY = ("apscheduler", "urllib3", "asyncio", "aiohttp", "web3", "tronpy", "peewee")

_log = structlog.stdlib.get_logger("sluice")

COUNTED_LEVELS: Final = frozenset({"warning", "error", "critical"})


def configure(settings: Settings, *, process: str) -> None:
    """Send all logging of this process through one redacting handler. Each line names the `process`.

    Raises SettingsError if the settings ask for a package that is missing.
    """
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_before_formatting(process),
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            # Text without local variables: these would show the settings.
            structlog.processors.format_exc_info,
            _redacting(Redactor(secrets_of(settings))),
            _reporting(reporting(settings)),
            _renderer(settings),
        ],
    )
    structlog.configure(
        processors=[*_before_formatting(process), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(settings.log_level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    _take_over(handler, settings.log_level.upper())
    # A record that cannot be formatted would print its arguments, past the redaction.
    logging.raiseExceptions = settings.environment == "development"
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread
    # A command says them when it is asked, by `sluice doctor`.
    for warning in settings.warnings() if process != "cli" else ():
        _log.warning("settings.development_only", what=warning)


def bind_request(request_id: str) -> None:
    """Put request_id into every line of this thread or task from now on, in place of an earlier one's facts."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=request_id)


def _before_formatting(process: str) -> list[Processor]:
    facts = {"process": process, "pid": os.getpid()}

    def count_line(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        if event["level"] in COUNTED_LEVELS:
            counters.count("sluice_log_lines", event["level"])
        return event

    def add_facts(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {**facts, **event}

    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.processors.add_log_level,
        count_line,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_facts,
    ]


def _redacting(redactor: Redactor) -> Processor:
    def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return cast("EventDict", redactor(event))

    return redact


def _reporting(report: Report | None) -> Processor:
    def pass_on(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        if report is not None:
            report(event)
        return event

    return pass_on


def _renderer(settings: Settings) -> Processor:
    if settings.log_format == "json":
        return structlog.processors.JSONRenderer(sort_keys=False, ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=32
    )


def _take_over(handler: logging.Handler, level: str) -> None:
    """Make handler the only one: gunicorn, dramatiq and others come with their own, which redact nothing."""
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for logger in list(logging.Logger.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.handlers.clear()
            logger.propagate = True
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    _log.critical("process.uncaught", exc_info=(kind, error, trace))


def _log_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        _log_uncaught(args.exc_type, args.exc_value, args.exc_traceback)
