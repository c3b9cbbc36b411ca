"""Traces: each turn is one trace across all processes (RT-24).

Trace IDs are derived from turn IDs, so retries, other workers and background flows continue the trace without
propagation. Tracing is off until `set_up_tracing` finds an endpoint.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, TraceFlags

from orchestrator.redaction import hide_secrets
from orchestrator.telemetry.metrics import PHASE_SECONDS
from orchestrator.types import TurnId

_ADDRESSES = frozenset({"http.target", "http.url", "url.full"})

Attributes = Mapping[str, str | int | float | bool]

_NOTHING: AbstractContextManager[None] = nullcontext()
_wanted: ContextVar[tuple[int, int] | None] = ContextVar("wanted", default=None)
"""The trace ID and span ID for new spans, or None for random IDs."""


class _State:
    tracer: trace.Tracer | None = None


def set_up_tracing(role: str, environment: Mapping[str, str]) -> bool:
    """Export spans by OTLP over HTTP if an OpenTelemetry environment variable specifies an endpoint.

    Return True if spans are exported. The service name is ``parley-`` followed by `role`, unless
    OTEL_SERVICE_NAME is set.
    """
    address = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or environment.get(
        "OTEL_EXPORTER_OTLP_ENDPOINT"
    )
    if not address or _State.tracer is not None:
        return _State.tracer is not None
    # These imports take half a second, which processes without tracing avoid.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    name = environment.get("OTEL_SERVICE_NAME", f"parley-{role}")
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}), id_generator=_make_ids())
    provider.add_span_processor(BatchSpanProcessor(make_discreet(OTLPSpanExporter())))
    trace.set_tracer_provider(provider)
    _State.tracer = provider.get_tracer("parley")
    return True


def shut_down_tracing() -> None:
    provider: Any = trace.get_tracer_provider()
    if _State.tracer is not None:
        provider.shutdown()
        _State.tracer = None


def span(name: str, **attributes: str | float | bool) -> AbstractContextManager[object]:
    """Open a span in the current trace. If the block raises, the error's type is recorded."""
    if _State.tracer is None:
        return _NOTHING
    return _open(_State.tracer, name, None, attributes)


def turn_span(
    name: str, turn_id: TurnId, *, waited_s: float | None = None, **attributes: str | float | bool
) -> AbstractContextManager[object]:
    """Open a span in a turn's trace.

    `waited_s`: the time that the turn waited in the queue, in seconds, shown as an additional, preceding
    span.
    """
    if _State.tracer is None:
        return _NOTHING
    parent = trace.set_span_in_context(NonRecordingSpan(root_of(turn_id)))
    if waited_s is not None:
        now = time.time_ns()
        _State.tracer.start_span("queued", parent, start_time=now - int(waited_s * 1e9)).end(now)
    return _open(_State.tracer, name, parent, {**attributes, "turn_id": turn_id})


def note_failure(kind: str) -> None:
    """Mark the current span as failed, although no error leaves its block.

    `kind`: an error code or type, but not a message, which can contain users' text.
    """
    if _State.tracer is not None:
        trace.get_current_span().set_status(trace.StatusCode.ERROR, kind)


def note_accepted(turn_id: TurnId, session_id: str) -> None:
    """Start an accepted turn's trace, linked to the request that submitted the turn."""
    if _State.tracer is None:
        return
    root = root_of(turn_id)
    request = trace.get_current_span().get_span_context()
    links = [Link(request)] if request.is_valid else []
    token = _wanted.set((root.trace_id, root.span_id))
    try:
        attributes = {"turn_id": turn_id, "session_id": session_id}
        _State.tracer.start_span("turn accepted", Context(), links=links, attributes=attributes).end()
    finally:
        _wanted.reset(token)


def root_of(turn_id: TurnId) -> SpanContext:
    """Return the context of a turn's root span, derived from the turn ID."""
    digest = hashlib.blake2b(turn_id.encode(), digest_size=24).digest()
    return SpanContext(
        trace_id=int.from_bytes(digest[:16]),
        span_id=int.from_bytes(digest[16:]),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


@contextmanager
def _open(
    tracer: trace.Tracer, name: str, parent: Context | None, attributes: Attributes
) -> Generator[trace.Span]:
    with tracer.start_as_current_span(
        name, parent, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
    ) as opened:
        try:
            yield opened
        except BaseException as error:
            # The message can contain users' text.
            opened.set_status(trace.StatusCode.ERROR, type(error).__name__)
            raise


def make_discreet(exporter: Any) -> Any:
    """Wrap a span exporter so that URL queries and secrets are removed from attributes."""
    from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import SpanExporter  # noqa: PLC0415

    def hide(name: str, value: Any) -> Any:
        if name == "url.query":
            return ""
        if not isinstance(value, str):
            return value
        return hide_secrets(value.partition("?")[0] if name in _ADDRESSES else value)

    class DiscreetExporter(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> Any:
            return exporter.export([self._hidden(span) for span in spans])

        def shutdown(self) -> None:
            exporter.shutdown()

        def _hidden(self, span: ReadableSpan) -> ReadableSpan:
            shown = {name: hide(name, value) for name, value in (span.attributes or {}).items()}
            return ReadableSpan(
                span.name,
                span.context,
                span.parent,
                span.resource,
                shown,
                span.events,
                span.links,
                span.kind,
                status=span.status,
                start_time=span.start_time,
                end_time=span.end_time,
                instrumentation_scope=span.instrumentation_scope,
            )

    return DiscreetExporter()


def _make_ids() -> Any:
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415

    class TurnIds(RandomIdGenerator):
        """A generator of random IDs that uses the IDs in `_wanted`, if set."""

        def generate_trace_id(self) -> int:
            wanted = _wanted.get()
            return super().generate_trace_id() if wanted is None else wanted[0]

        def generate_span_id(self) -> int:
            wanted = _wanted.get()
            return super().generate_span_id() if wanted is None else wanted[1]

    return TurnIds()


@dataclass(slots=True)
class Phases:
    """A timer for a turn's consecutive phases, which also opens a span for each phase.

    Usage: ``with Phases("load") as phases: … phases.enter("understand") …``. Names are metric labels, so they
    must be few and fixed.
    """

    name: str
    _span: AbstractContextManager[object] = _NOTHING
    _began: float = 0.0

    def __enter__(self) -> Self:
        self._span = span(self.name)
        self._span.__enter__()
        self._began = time.perf_counter()
        return self

    def enter(self, name: str) -> None:
        now = time.perf_counter()
        PHASE_SECONDS.labels(self.name).observe(now - self._began)
        self._span.__exit__(None, None, None)
        self.name, self._began, self._span = name, now, span(name)
        self._span.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        PHASE_SECONDS.labels(self.name).observe(time.perf_counter() - self._began)
        self._span.__exit__(kind, error, traceback)
