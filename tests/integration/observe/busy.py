"""A busy hour of the whole system in a minute, with all events that metrics report.

Real stores, a gateway, workers, a scripted model, a failing tool, webhooks to an unresponsive receiver. Each
scene waits until Prometheus has seen its metrics.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg

from orchestrator.adapters.postgres.migrate import migrate
from parley.embedded import Store, open_database, open_redis
from parley.testing.scripted_model import Answer, Fail, Hang, Rule, Script, ScriptedModel
from tests.integration.chaos.fleet import Fleet, fleet, wait_until
from tests.integration.modelled import TAPAS, travel_with, understood
from tests.integration.observe.scraping import Prometheus, prometheus
from tests.processes.forked import ROOT, start
from tests.processes.gateway import gateway
from tests.processes.ports import free_ports

MODEL = "scripted"
PRICE = 2.0
"""Price of a million tokens, in prompts or answers."""
FAILING_CITY = "Reykjavik"
BROKEN_SEARCH = f'''

class Flights(Flights):
    """The airline of {FAILING_CITY} does not answer."""

    async def search(self, *, destination: str, call: ToolCall, **more):
        if destination == "KEF":
            raise ToolFailure(FailureCategory.SERVER_ERROR, "The airline does not answer.")
        return await super().search(destination=destination, call=call, **more)
'''


def flight(flow: str, destination: str, **more: str) -> Answer:
    return understood("task", flow, origin="Oslo", destination=destination, date="tomorrow", **more)


SCRIPT = Script(
    rules=(
        Rule(match="the model breaks", replies=(Fail(500),)),
        Rule(match="the model hangs", replies=(Hang(), understood("chitchat"))),
        Rule(match="tapas", replies=(understood("task", "book_flight", destination="Madrid"),)),
        Rule(match=FAILING_CITY, replies=(flight("search_flights", FAILING_CITY),)),
        Rule(match="search", replies=(flight("search_flights", "Madrid"),)),
        Rule(match="Melbourne", replies=(flight("book_flight", "Melbourne", passengers="8"),)),
        Rule(replies=(understood("chitchat"),)),
    )
)
OFTEN = "schedule: {often: {trigger: abandon_flows, every_s: 2}}\n"
SETTINGS = {
    "PARLEY_MODEL": MODEL,
    "PARLEY_MODEL_FAILURES": "2",
    "PARLEY_MODEL_COOLING_S": "3",
    "PARLEY_MAX_ATTEMPTS": "2",
    "PARLEY_LEASE_TTL_S": "2",
    "PARLEY_WEBHOOK_NETWORKS": '["127.0.0.0/8"]',
    "PARLEY_WEBHOOK_GIVE_UP_S": "3",
    "PARLEY_WEBHOOK_TIMEOUT_S": "1",
}


@dataclass
class Day:
    """The environment of the scenes."""

    http: httpx.Client
    crew: Fleet
    redis: Store
    database: Store
    prometheus: Prometheus
    ports: dict[str, int]

    def session(self) -> str:
        made = self.http.post("/v1/sessions", json={"domain": "modelled"})
        return made.raise_for_status().json()["session_id"]

    def say(self, session: str, text: str, *, wait: int = 30) -> dict[str, Any]:
        told = self.http.post(f"/v1/sessions/{session}/turns", params={"wait": wait}, json={"text": text})
        return told.raise_for_status().json()

    def sees(self, query: str, *, within_s: float = 60) -> None:
        """Wait until Prometheus has a result for this query."""
        wait_until(lambda: self.prometheus.ask(query), within_s=within_s, what=f"Prometheus sees {query}")

    def start(self, role: str, queues: str) -> None:
        """Start a worker, and wait until Prometheus sees it."""
        port = str(self.ports[role])
        self.crew.environment = {**self.crew.environment, "PARLEY_METRICS_PORT": port}
        self.crew.launch(application="workers.app", queues=queues)


def nobody_works(day: Day) -> None:
    """Submit turns and Internal flows while no worker runs."""
    day.say(day.session(), "search flights from Oslo to Madrid tomorrow", wait=0)
    for flow in ("expire_sessions", "gather_context"):
        day.http.post("/v1/runs", json={"flow": flow}).raise_for_status()
    day.sees('parley_lanes{state="waiting"} == 1 and on () parley_unfinished_turns == 1')
    day.sees("parley_oldest_turn_age_seconds > 1")
    for urgency in ("background", "urgent"):
        day.sees(f'parley_internal_runs_waiting{{urgency="{urgency}"}} == 1')


def workers_come(day: Day) -> None:
    day.start("turns", "turns,submissions")
    day.start("internal", "internal,urgent")
    day.sees("parley_workers == 2")
    day.sees("parley_unfinished_turns == 0")
    day.sees('parley_internal_runs_waiting{urgency="urgent"} == 0')


def people_talk(day: Day) -> None:
    """Hold conversations with and without a model, with a failing tool, an approval, and a listener."""
    session = day.session()
    day.say(session, "search flights from Oslo to Madrid tomorrow")
    day.say(session, TAPAS)
    day.say(day.session(), f"search flights from Oslo to {FAILING_CITY} tomorrow")
    costly = day.session()
    day.say(costly, "Book a flight from Oslo to Melbourne tomorrow for 8 people")
    day.say(costly, "yes")
    pressed = {"action": {"name": "a_button_of_nobody", "payload": {}}}
    day.http.post(f"/v1/sessions/{session}/turns", params={"wait": 30}, json=pressed).raise_for_status()
    day.sees("parley_pending_approvals == 1")
    day.http.post("/v1/runs", json={"flow": "summarize_session", "session_id": costly}).raise_for_status()
    assert day.http.get("/v1/turns/turn_of_nobody").status_code == 404
    with day.http.stream("GET", f"/v1/sessions/{session}/events") as following:
        assert following.is_success
        day.sees("parley_event_listeners == 1")
    day.sees("parley_event_listeners == 0")


def a_budget_is_spent(day: Day) -> None:
    session = day.session()
    day.say(session, TAPAS)
    day.say(session, "hm, let me think")
    day.sees('parley_model_budget_refusals_total{scope="session"} > 0')


def the_model_breaks(day: Day) -> None:
    day.say(day.session(), f"{TAPAS} until the model breaks")
    day.sees("parley_model_breaker_open == 1")
    wait_until(
        lambda: "degraded" not in day.say(day.session(), TAPAS)["flags"],
        within_s=60,
        what="the model is asked again",
    )


def nobody_takes_the_events(day: Day) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        day.http.post("/v1/webhooks", json={"url": f"http://127.0.0.1:{port}/events"}).raise_for_status()
        day.say(day.session(), "hello")
        day.sees('parley_webhook_feeds{state="failing"} > 0')
        day.sees('parley_webhook_feeds{state="given_up"} > 0')
    (feed, *_) = day.http.get("/v1/webhooks/failing").raise_for_status().json()
    assert feed["error"] == "no response within 1 s"


def redis_is_away(day: Day) -> None:
    """Run turns without Redis. Their notes can't be saved yet."""
    session = day.session()
    day.redis.child.stop()
    day.say(session, "search flights from Oslo to Rome tomorrow", wait=0)
    day.sees('parley_outbox_waiting{kind="notes"} > 0 and parley_outbox_oldest_seconds{kind="notes"} > 0')
    day.redis.child.start()
    day.redis.child.await_ready()
    day.sees('parley_outbox_waiting{kind="notes"} == 0')


def a_domain_is_gone(day: Day) -> None:
    """Remove a domain, as in a release without it."""
    session = day.session()
    with psycopg.connect(day.database.url, autocommit=True) as connection:
        connection.execute("UPDATE sessions SET domain = 'gone' WHERE session_id = %s", (session,))
    day.say(session, "hello", wait=0)
    day.sees("parley_quarantined_turns == 1")


def jobs_are_fired(day: Day) -> None:
    """Run beat for a while."""
    own = {name: value for name, value in day.crew.environment.items() if name != "PARLEY_METRICS_PORT"}
    beat = start(
        ["-m", "celery", "-A", "workers.app", "beat", "--pidfile=", "-s", str(day.crew.logs / "schedule")],
        environment={**os.environ, "PYTHONPATH": str(ROOT), **own},
        log=day.crew.logs / "beat.log",
    )
    try:
        day.sees("changes(parley_job_fired_timestamp_seconds[5m]) > 0")
    finally:
        beat.kill()
        beat.wait()


def a_worker_stands_still(day: Day) -> None:
    """Freeze a worker. Another takes over its turn, and the frozen worker is fenced off afterwards."""
    frozen = day.crew.workers[0]
    day.say(day.session(), f"{TAPAS} while the model hangs", wait=0)
    day.sees('parley_lanes{state="held"} == 1')
    frozen.freeze()
    day.start("more turns", "turns,submissions")
    day.sees("parley_unfinished_turns == 0")
    frozen.thaw()
    day.sees("parley_turns_fenced_total > 0")


def postgresql_is_away(day: Day) -> None:
    day.prometheus.scrape_every("4s")
    day.database.child.stop()
    day.sees("parley_store_answers == 0")
    day.database.child.start()
    day.database.child.await_ready()
    day.sees("parley_store_answers == 1")
    assert day.say(day.session(), "hello")["status"] == "done"


SCENES: tuple[Callable[[Day], None], ...] = (
    nobody_works,
    workers_come,
    people_talk,
    a_budget_is_spent,
    the_model_breaks,
    nobody_takes_the_events,
    redis_is_away,
    a_domain_is_gone,
    jobs_are_fired,
    a_worker_stands_still,
    postgresql_is_away,
)


def make_domain(folder: Path) -> Path:
    """Write travel with prices, a small budget, and an unresponsive airline."""
    place = travel_with(
        folder,
        nlu={"mode": "system2"},
        models={
            "prices": {MODEL: {"prompt": PRICE, "completion": PRICE}},
            "timeout_s": 10,
            "max_tokens": 512,
        },
        budgets={"tokens_per_session": 2_300},  # an answer takes 400 tokens, and 2,000 are reserved
        resilience={"backoff_base_s": 0.01},
    )
    (place / "internal_flows.yaml").write_text(OFTEN)
    services = place / "services.py"
    services.write_text(services.read_text() + BROKEN_SEARCH)
    return place


@contextmanager
def busy_day(folder: Path) -> Iterator[Day]:
    """Run all scenes. Prometheus and the processes run until the block ends."""
    roles: tuple[str, ...] = ("turns", "internal", "more turns")
    ports = dict(zip(roles, free_ports(len(roles)), strict=True))
    (folder / "stores").mkdir()
    with (
        open_redis(folder / "stores", durable=True) as redis,
        open_database(folder / "stores", durable=False) as database,
        ScriptedModel(SCRIPT) as model,
    ):
        migrate(database.url)
        environment = {
            **SETTINGS,
            "DATABASE_URL": database.url,
            "REDIS_URL": redis.url,
            "PARLEY_DOMAIN": str(make_domain(folder)),
            "OPENAI_BASE_URL": model.base_url,
        }
        with (
            fleet(database.url, redis.url, folder, environment) as crew,
            gateway(environment, folder / "gateway.log") as url,
            httpx.Client(base_url=url, timeout=60) as http,
        ):
            targets = {role: f"127.0.0.1:{port}" for role, port in ports.items()}
            with prometheus({"gateway": url.removeprefix("http://"), **targets}, folder) as scraper:
                day = Day(http, crew, redis, database, scraper, ports)
                for scene in SCENES:
                    scene(day)
                yield day
