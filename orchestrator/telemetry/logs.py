"""Logs: messages are sentences, facts are fields; one line of JSON each, to standard error."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Callable, Generator
from typing import Any

import structlog
from opentelemetry import trace
from structlog.typing import EventDict

from orchestrator.errors import ParleyError
from orchestrator.types import SessionId, TurnId

HIDDEN = "[secret]"


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    return structlog.get_logger(name)


def bind_turn(session_id: SessionId, turn_id: TurnId) -> None:
    """From now on, what this task logs names the turn."""
    structlog.contextvars.bind_contextvars(session=session_id, turn=turn_id)


def _add_trace(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """The trace to which a line belongs, where traces are sent."""
    here = trace.get_current_span().get_span_context()
    if here.is_valid:
        event["trace_id"] = trace.format_trace_id(here.trace_id)
    return event


def _format_error(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A traceback without what the errors say: that may be what a user or a tool said.

    Errors of our own family say nothing of that kind, and are told whole.
    """
    error = _error_of(event.pop("exc_info", None))
    if error is not None:
        event["exception"] = "".join(_lines_of(error))
    return event


def _error_of(given: Any) -> BaseException | None:
    """`given` as the standard library takes it: True, an error, or a triple."""
    if given is True:
        return sys.exc_info()[1]
    return given if isinstance(given, BaseException) else given[1] if given else None


def _lines_of(error: BaseException) -> Generator[str]:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _lines_of(cause)
        yield "which led to:\n"
    yield from traceback.format_tb(error.__traceback__)
    told = f": {error}" if isinstance(error, ParleyError) else ""
    yield f"{type(error).__module__}.{type(error).__qualname__}{told}\n"


def _hiding(secrets: frozenset[str]) -> Callable[[Any, str, Any], str]:
    """The last guard: libraries may log what they were configured with."""
    written = {json.dumps(secret, ensure_ascii=False)[1:-1] for secret in secrets}
    hidden = sorted(secrets | written, key=len, reverse=True)

    def hide(_logger: Any, _method: str, line: Any) -> str:
        for secret in hidden:
            if secret in line:
                line = line.replace(secret, HIDDEN)
        return line

    return hide


def set_up_logging(level: int | str = logging.INFO, secrets: frozenset[str] = frozenset()) -> None:
    """Send what we and the libraries log through structlog.

    `level`: a number, or a name in capitals. `secrets`: what no line may hold, whoever says it.
    """
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
                _format_error,
                structlog.processors.JSONRenderer(ensure_ascii=False),
                _hiding(secrets),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
