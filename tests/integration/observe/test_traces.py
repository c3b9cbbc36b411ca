"""A turn is one trace through all involved processes, as a collector receives it (RT-24)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from orchestrator.telemetry.traces import root_of
from orchestrator.types import TurnId
from parley.embedded import Stores
from parley.testing.scripted_model import Rule, Script, ScriptedModel
from tests.integration.chaos.fleet import fleet, wait_until
from tests.integration.modelled import understood
from tests.integration.workers.rabbit import is_installed, rabbit
from tests.processes.gateway import gateway
from tests.processes.http import Asked, answering

SUMMARY_AT = 20
"""The turn that makes a summary due."""
SECRET_WORD = "xylophone"
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
"""A `traceparent` from a backend."""


@dataclass(frozen=True)
class Seen:
    """A received span. `links`: spans of other traces, as (trace, span)."""

    service: str
    name: str
    span_id: bytes
    parent_id: bytes
    links: tuple[tuple[bytes, bytes], ...]
    failure: str | None
    attributes: dict[str, str]


class Collector:
    """Spans by trace."""

    def __init__(self) -> None:
        self.traces: dict[bytes, list[Seen]] = defaultdict(list)
        self.bodies: list[bytes] = []
        self.url = ""

    def take(self, body: bytes) -> None:
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = {pair.key: pair.value.string_value for pair in resource.resource.attributes}[
                "service.name"
            ]
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.traces[span.trace_id].append(
                        Seen(
                            service,
                            span.name,
                            span.span_id,
                            span.parent_span_id,
                            tuple((link.trace_id, link.span_id) for link in span.links),
                            span.status.message if span.status.code == Status.STATUS_CODE_ERROR else None,
                            {pair.key: str(pair.value) for pair in span.attributes},
                        )
                    )

    def of_turn(self, turn_id: str) -> list[Seen]:
        return list(self.traces[root_of(TurnId(turn_id)).trace_id.to_bytes(16)])


def paths(spans: list[Seen]) -> set[tuple[str, ...]]:
    """Return each span with its ancestors, outermost first."""
    known = {span.span_id: span for span in spans}

    def path(span: Seen) -> tuple[str, ...]:
        above = known.get(span.parent_id)
        return (*(path(above) if above else ()), f"{span.service.removeprefix('parley-')}: {span.name}")

    return {path(span) for span in spans}


@contextmanager
def collector() -> Iterator[Collector]:
    taken = Collector()

    def answer(asked: Asked) -> tuple[int, Any]:
        taken.take(asked.body)
        return 200, {}

    with answering(answer) as taken.url:
        yield taken


ACCEPTED = "gateway: turn accepted"
TURN = (ACCEPTED, "turns: turn")
OF_EACH_TURN = {
    (ACCEPTED,),
    (ACCEPTED, "turns: queued"),
    TURN,
    (*TURN, "turns: understand"),
    (*TURN, "turns: respond"),
    (*TURN, "turns: commit"),
}
WITH_A_TOOL = (*TURN, "turns: execute", "turns: tool")
WITH_A_MODEL = (*TURN, "turns: understand", "turns: model")
SEARCHED = {
    "to Madrid": {"origin": "Oslo", "destination": "Madrid", "date": "tomorrow"},
    "to Rome": {"origin": "Oslo", "destination": "Rome", "date": "2020-01-01"},
}
OF_A_FLOW = (ACCEPTED, "internal: summarize_session items")


@dataclass(frozen=True)
class System:
    """A running system with a collector. `turns`: turns by subject."""

    taken: Collector
    turns: dict[str, str]


@pytest.fixture(scope="module", params=["redis", pytest.param("rabbitmq", marks=pytest.mark.slow)])
def system(
    request: pytest.FixtureRequest,
    stores: Stores,
    database_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("traces")
    with ExitStack() as stack:
        environment = {"DATABASE_URL": database_url, "REDIS_URL": stores.redis_url}
        if request.param == "rabbitmq":
            if not is_installed():
                pytest.skip("Debian's package rabbitmq-server is not installed")
            environment["PARLEY_BROKER_URL"] = stack.enter_context(rabbit(folder / "rabbit")).url
        rules = [
            Rule(prompt="nlu_think", match=to, replies=(understood("task", "search_flights", **values),))
            for to, values in SEARCHED.items()
        ]
        other = Rule(prompt="nlu_think", replies=(understood("chitchat"),))
        model = stack.enter_context(ScriptedModel(Script(rules=(*rules, other))))
        taken = stack.enter_context(collector())
        environment |= {
            "OPENAI_BASE_URL": model.base_url,
            "OTEL_EXPORTER_OTLP_ENDPOINT": taken.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }
        crew = stack.enter_context(fleet(database_url, stores.redis_url, folder, environment))
        url = stack.enter_context(gateway(environment, folder / "gateway.log"))
        crew.launch(application="workers.app")
        crew.launch(application="workers.app", queues="internal,urgent")
        yield System(taken, _talk(url))


def test_a_turn_is_one_trace_through_all_processes(system: System) -> None:
    """Gateway, queue, lane, NLU, PEX, RES, tool and model, with correct parents."""
    for about, part in (("a tool", WITH_A_TOOL), ("a model", WITH_A_MODEL)):
        wanted = OF_EACH_TURN | {part}
        wait_until(
            lambda wanted=wanted, about=about: wanted <= paths(system.taken.of_turn(system.turns[about])),
            within_s=30,
            what=f"the trace of the turn with {about} has {wanted}",
        )


def test_an_internal_flow_is_in_the_trace_of_the_turn_that_made_it_due(system: System) -> None:
    wanted = OF_EACH_TURN | {OF_A_FLOW}
    wait_until(
        lambda: wanted <= paths(system.taken.of_turn(system.turns["a summary"])),
        within_s=60,
        what=f"the trace of turn {SUMMARY_AT} reaches the Internal flow",
    )


def test_the_callers_trace_is_continued_by_the_request_and_linked_from_the_turn(system: System) -> None:
    trace_id, span_id = bytes.fromhex(CALLER.split("-")[1]), bytes.fromhex(CALLER.split("-")[2])

    def request() -> Seen | None:
        found = (span for span in system.taken.traces[trace_id] if span.parent_id == span_id)
        return next(found, None)

    wait_until(request, within_s=30, what="the request's span continues the caller's trace")
    span = request()
    assert span is not None
    assert span.name.startswith("POST /v1/sessions/{session_id}/turns")
    (root,) = (span for span in system.taken.of_turn(system.turns["a tool"]) if span.name == "turn accepted")
    assert root.links == ((trace_id, span.span_id),)


def test_errors_are_on_the_spans_where_they_happened(system: System) -> None:
    def failures() -> dict[str, str]:
        spans = system.taken.of_turn(system.turns["a failing tool"])
        return {span.name: span.failure for span in spans if span.failure is not None}

    wait_until(failures, within_s=30, what="the failure is seen")
    assert failures() == {"tool": "validation_error"}, "the turn itself goes on: the user is asked again"
    assert not any(span.failure for span in system.taken.of_turn(system.turns["a tool"]))


def test_no_contents_are_told(system: System) -> None:
    """Attributes are identifiers and counts, and contain no text of users, models or tools."""
    assert not any(SECRET_WORD.encode() in body for body in system.taken.bodies)
    told = {
        name
        for spans in system.taken.traces.values()
        for span in spans
        for name in span.attributes
        if not name.startswith(
            ("http.", "net.", "url.", "server.", "client.", "user_agent.", "network.", "asgi.")
        )
    }
    assert "tool_id" in told
    assert told <= {"turn_id", "session_id", "attempt", "prompt_id", "tool_id", "run_id"}


def _talk(url: str) -> dict[str, str]:
    with httpx.Client(base_url=url, timeout=90) as http:
        session = http.post("/v1/sessions", json={"domain": "travel"}).raise_for_status().json()["session_id"]

        def say(text: str, **headers: str) -> str:
            told = http.post(
                f"/v1/sessions/{session}/turns", params={"wait": 60}, json={"text": text}, headers=headers
            )
            return told.raise_for_status().json()["turn_id"]

        turns = {
            "a tool": say("search flights from Oslo to Madrid tomorrow", traceparent=CALLER),
            "a failing tool": say("search flights from Oslo to Rome on 2020-01-01"),
        }
        others = [say(f"hm {SECRET_WORD}") for _ in range(SUMMARY_AT - len(turns))]
        return {**turns, "a model": others[0], "a summary": others[-1]}
