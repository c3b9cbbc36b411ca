"""Logs: messages are sentences, facts are fields; one line of JSON each, to standard error."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog
from opentelemetry import trace
from structlog.typing import EventDict

from orchestrator.types import SessionId, TurnId


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


def set_up_logging(level: int | str = logging.INFO) -> None:
    """Send what we and the libraries log through structlog. `level`: a number, or a name in capitals."""
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
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(ensure_ascii=False),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
