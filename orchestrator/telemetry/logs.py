"""JSON logs on standard error, one line per event. Messages are sentences; facts are fields."""

import logging
import os
import sys
import threading
import traceback
from collections.abc import Generator
from types import TracebackType
from typing import Any, Final

import structlog
from opentelemetry import trace
from structlog.typing import EventDict

from orchestrator.errors import ParleyError
from orchestrator.redaction import hide_secrets, learn_secrets

OURS: Final = frozenset({"orchestrator", "internal_flows", "workers", "gateway", "domains", "parley"})
CARRIERS: Final = frozenset({"httpcore", "httpcore2", "httpx", "httpx2", "mcp", "openai"})
"""Libraries whose log records can contain content of users, models and tools.

These records are dropped. Adapters log the libraries' failures.
"""
LONGEST_VALUE: Final = 1_000
"""Maximum length of a logged value, in characters."""
WARNINGS: Final = "py.warnings"
"""The logger of Python warnings. Warnings can quote errors, so only location and category are logged."""


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    return structlog.get_logger(name)


_log = get_logger(__name__)


def _add_trace(_logger: Any, _method: str, event: EventDict) -> EventDict:
    here = trace.get_current_span().get_span_context()
    if here.is_valid:
        event["trace_id"] = trace.format_trace_id(here.trace_id)
    return event


def _render_errors(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Replace errors with their types and tracebacks, but keep the messages of Parley's own errors.

    Other errors' messages can contain text from users or tools, or a URL with a password.
    """
    error = _error_of(event.pop("exc_info", None))
    if error is not None:
        event["event"] = _without_words(str(event["event"]), error)
        event["exception"] = "".join(_lines_of(error))
    if event.get("logger") == WARNINGS:
        event["event"] = str(event["event"]).partition("Warning: ")[0] + "Warning"
    for name, value in event.items():
        if isinstance(value, BaseException):
            event[name] = name_error(value)
        elif isinstance(value, str) and len(value) > LONGEST_VALUE and name != "exception":
            event[name] = f"{value[:LONGEST_VALUE]}… ({len(value)} characters)"
    return event


def name_error(error: BaseException) -> str:
    """Return one line about an error: a Parley error's message, or another error's type.

    For an OSError, the operating system's message follows the type.
    """
    kind = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    match error:
        case ParleyError():
            return str(error)
        case OSError(errno=int(number)):
            return f"{kind}: {os.strerror(number)}"
        case _:
            return kind


def _error_of(given: Any) -> BaseException | None:
    if given is True:
        return sys.exc_info()[1]
    return given if isinstance(given, BaseException) else given[1] if given else None


def _chain_of(error: BaseException) -> Generator[BaseException]:
    """Yield the causes of an error, root cause first, followed by the error."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _chain_of(cause)
    yield error


def _without_words(message: str, error: BaseException) -> str:
    """Return a log message in which `name_error` replaces the texts of the error and its causes.

    Texts of Parley's own errors are kept.
    """
    for each in _chain_of(error):
        if not isinstance(each, ParleyError) and str(each):
            message = message.replace(repr(each), name_error(each)).replace(str(each), name_error(each))
    return message


def _lines_of(error: BaseException) -> Generator[str]:
    for number, each in enumerate(_chain_of(error)):
        if number:
            yield "which led to:\n"
        yield from traceback.format_tb(each.__traceback__)
        message = f": {each}" if isinstance(each, ParleyError) else ""
        yield f"{type(each).__module__}.{type(each).__qualname__}{message}\n"


def _is_logged(record: logging.LogRecord) -> bool:
    """Return False for libraries' records below INFO, which can quote content, and for all records from `CARRIERS`."""
    library = record.name.partition(".")[0]
    if library in OURS:
        return True
    return record.levelno >= logging.INFO and library not in CARRIERS


def _hide(_logger: Any, _method: str, line: Any) -> str:
    """Hide secrets in the rendered line, because libraries may log configuration values."""
    return hide_secrets(line)


def _print_until_set_up() -> None:
    """Configure safe logging for programs that only import Parley, such as notebooks or a domain's tests.

    By default, structlog prints local variables in tracebacks, including configuration, secrets and content.
    An existing structlog configuration is not changed.
    """
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
            _render_errors,
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
            _hide,
        ],
        logger_factory=lambda *_names: structlog.PrintLogger(sys.stderr),
    )


_print_until_set_up()


def set_up_logging(level: int | str = logging.INFO, secrets: frozenset[str] = frozenset()) -> None:
    """Route all of this process's logs and unhandled errors through structlog.

    `level`: a number, or a name in capitals. `secrets`: texts that must not appear in logs.
    """
    learn_secrets(secrets)
    shared = [
        structlog.contextvars.merge_contextvars,
        _add_trace,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _render_errors,
                structlog.processors.JSONRenderer(ensure_ascii=False),
                _hide,
            ],
        )
    )
    handler.addFilter(_is_logged)
    logging.captureWarnings(True)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    sys.excepthook = _log_end
    threading.excepthook = _log_end_of_thread


def _log_end(kind: type[BaseException], error: BaseException, trace_back: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    _log.critical("This process is exiting after an unexpected error.", exc_info=(kind, error, trace_back))


def _log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        _log.error("A thread ended after an unexpected error.", exc_info=ended.exc_value)
