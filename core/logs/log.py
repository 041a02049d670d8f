"""Configures logging, once per process, for our events and for those of every library. Called by entry points.

One line per event on stderr: JSON in production, readable in development, from a failed start on. Every line passes
core.logs.quiet and core.logs.redact. Code logs with `structlog.get_logger()`, an event name with dots and keyword
facts.
"""

import logging
import os
import sys
import threading
from types import TracebackType
from typing import Final, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from core.logs.outages import StoreAwayError, first_line
from core.logs.quiet import Quiet, show_repeats
from core.logs.redact import Redactor, secrets_of
from core.logs.reports import Report, reporting
from core.settings.rules import Start
from core.settings.settings import Settings, SettingsError, first_look, load_settings

# They log each job or connection at INFO, which drowns important events.
_CHATTY = ("apscheduler", "urllib3", "asyncio", "aiohttp", "web3", "tronpy", "peewee")

_log = structlog.stdlib.get_logger("sluice")

# The code with which a process ends that does not start.
NOT_STARTED: Final = 1


def begin(process: str) -> None:
    """Log as production does until configure() knows the settings, so that a failed start is a line, too.

    Does nothing in development, whose failed start is read by a person.
    """
    look = first_look()
    if look.is_production:
        _install(process, Redactor(look.secrets), level="info", renderer=_JSON)


def start(process: str, role: Start) -> Settings:
    """Return the settings and configure the log by them, or end the process with a line that lists their problems."""
    begin(process)
    try:
        settings = load_settings(role=role)
        configure(settings, process=process)
    except SettingsError as error:
        _log_uncaught(type(error), error, error.__traceback__)
        sys.exit(NOT_STARTED)
    return settings


def configure(settings: Settings, *, process: str) -> None:
    """Send all logging of this process through one redacting handler. Each line names the `process`.

    Raises SettingsError if the settings ask for a package that is missing.
    """
    report, renderer = reporting(settings), _renderer(settings)
    _install(process, Redactor(secrets_of(settings)), level=settings.log_level, renderer=renderer, report=report)
    # A record that cannot be formatted would print its arguments, past the redaction.
    logging.raiseExceptions = settings.environment == "development"
    # A command says them when it is asked, by `sluice doctor`.
    for warning in settings.warnings() if process != "cli" else ():
        _log.warning("settings.development_only", what=warning)


def _install(
    process: str, redactor: Redactor, *, level: str, renderer: Processor, report: Report | None = None
) -> None:
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_before_formatting(process),
        processors=[
            show_repeats,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            # Text without local variables: these would show the settings.
            structlog.processors.format_exc_info,
            _redacting(redactor),
            _reporting(report),
            renderer,
        ],
    )
    structlog.configure(
        processors=[*_before_formatting(process), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    handler.addFilter(Quiet(is_command=process == "cli"))
    _take_over(handler, level.upper())
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread


def bind_request(request_id: str) -> None:
    """Put request_id into every line of this thread or task from now on, in place of an earlier one's facts."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=request_id)


def _before_formatting(process: str) -> list[Processor]:
    def add_facts(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        # Asked each time: a worker of gunicorn keeps loggers that its master has used.
        return {"process": process, "pid": os.getpid(), **event}

    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.processors.add_log_level,
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


_JSON: Final = structlog.processors.JSONRenderer(sort_keys=False, ensure_ascii=False)


def _renderer(settings: Settings) -> Processor:
    if settings.log_format == "json":
        return _JSON
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
    if isinstance(error, StoreAwayError):
        _log.critical("process.not_started", problems=[first_line(str(error))])
        return
    if isinstance(error, SettingsError):
        # Behind a colon the text of a variable with a secret's name would be redacted.
        problems = [problem.replace(": ", " - ", 1) for problem in error.problems]
        _log.critical("process.not_started", problems=problems)
        return
    _log.critical("process.uncaught", exc_info=(kind, error, trace))


def _log_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        _log_uncaught(args.exc_type, args.exc_value, args.exc_traceback)
