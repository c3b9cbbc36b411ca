"""A turn is one trace through every process that has a part in it, as a collector receives it (RT-24)."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.telemetry.traces import root_of
from orchestrator.testing.scripted_model import Answer, Rule, Script, ScriptedModel
from orchestrator.types import TurnId
from tests.integration.chaos.fleet import fleet, wait_until
from tests.integration.observe.running import gateway

SUMMARY_AT = 20
"""The turn that makes a summary due."""
SECRET_WORD = "xylophone"


class Collector:
    """Spans by trace: name and service."""

    def __init__(self) -> None:
        self.traces: dict[bytes, list[tuple[str, str]]] = defaultdict(list)
        self.bodies: list[bytes] = []
        self.url = ""

    def take(self, body: bytes) -> None:
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            named = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.traces[span.trace_id].append((span.name, named["service.name"]))

    def trace_of(self, turn_id: str) -> set[tuple[str, str]]:
        return set(self.traces[root_of(TurnId(turn_id)).trace_id.to_bytes(16)])


@contextmanager
def collector() -> Iterator[Collector]:
    taken = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    taken.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_turn_is_one_trace_through_all_processes(database_url: str, redis_url: str, tmp_path: Path) -> None:
    migrate(database_url)
    reply = Rule(prompt="nlu_think", replies=(Answer(json={"kind": "chitchat", "flows": [], "slots": {}}),))
    with ScriptedModel(Script(rules=(reply,))) as model, collector() as taken:
        environment = {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "OPENAI_BASE_URL": model.base_url,
            "OTEL_EXPORTER_OTLP_ENDPOINT": taken.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }
        with (
            fleet(database_url, redis_url, tmp_path, environment) as crew,
            gateway(environment, tmp_path / "gateway.log") as url,
        ):
            crew.start(application="workers.app")
            crew.start(application="workers.app", queues="internal,urgent")
            turns = _talk(url)
            tools, last = turns[0], turns[-1]
            wanted = {
                ("turn accepted", "parley-gateway"),
                ("queued", "parley-turns"),
                ("turn", "parley-turns"),
                ("understand", "parley-turns"),
                ("carry_out", "parley-turns"),
                ("commit", "parley-turns"),
            }
            wait_until(
                lambda: wanted | {("tool", "parley-turns")} <= taken.trace_of(tools),
                within_s=30,
                what=f"the trace of a turn with a tool is whole: {taken.trace_of(tools)}",
            )
            wait_until(
                lambda: wanted | {("summarize_session items", "parley-internal")} <= taken.trace_of(last),
                within_s=60,
                what=f"the trace of turn {SUMMARY_AT} reaches the Internal flow: {taken.trace_of(last)}",
            )
            asked = {name for spans in taken.traces.values() for name, _ in spans}
            assert "model" in asked
            assert any(name.startswith("POST /v1/sessions/{session_id}/turns") for name in asked)
    assert not any(SECRET_WORD.encode() in body for body in taken.bodies)


def _talk(url: str) -> list[str]:
    with httpx.Client(base_url=url, timeout=60) as http:
        session = http.post("/v1/sessions", json={"domain": "travel"}).raise_for_status().json()["session_id"]
        texts = ["search flights from Oslo to Madrid tomorrow", *[f"hm {SECRET_WORD}"] * (SUMMARY_AT - 1)]
        answers = [
            http.post(f"/v1/sessions/{session}/turns", params={"wait": 30}, json={"text": text})
            for text in texts
        ]
        return [answer.raise_for_status().json()["turn_id"] for answer in answers]
