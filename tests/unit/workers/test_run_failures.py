"""Failures to send or store runs: they affect nothing else, and are abandoned or retried (IF-9)."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import MagicMock

import psycopg
import pytest
from kombu.exceptions import OperationalError

from internal_flows.catalogue import Catalogue
from internal_flows.maintenance.states import REPAIR_STATE
from internal_flows.stages import InternalFlow
from orchestrator.adapters.postgres.runs.starting import ATTEMPTS
from orchestrator.adapters.postgres.runs.work import PostgresRunWork
from orchestrator.adapters.task_sender import TaskSender
from orchestrator.errors import Unavailable
from orchestrator.ports.runs.records import Hint, NewRun, Started
from orchestrator.ports.runs.status import RunStatus, Urgency
from orchestrator.ports.runs.work import RunEnd, Swept
from orchestrator.types import SessionId
from workers.internal.executor import RunExecutor


async def test_a_message_that_cannot_be_sent_holds_no_other_back(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = TaskSender("redis://127.0.0.1:1/0")
    tried: list[str] = []

    def send_task(_name: str, *, task_id: str, **_options: Any) -> None:
        tried.append(task_id)
        if task_id == "first":
            raise OperationalError("gone")

    monkeypatch.setattr(sender._app, "send_task", send_task)
    await sender.send_runs(
        Started({}, tuple(Hint(name, "flow", Urgency.URGENT) for name in ("first", "second")))
    )

    assert tried == ["first", "second"]


async def test_an_end_that_always_meets_another_start_is_given_up_in_the_end() -> None:
    tries: list[None] = []

    class Contended:
        def hot_transaction(self) -> None:
            tries.append(None)
            raise psycopg.errors.UniqueViolation

    work = PostgresRunWork(cast("Any", Contended()), MagicMock())
    with pytest.raises(Unavailable):
        await work.finish(MagicMock(), RunEnd(RunStatus.DONE))

    assert len(tries) == ATTEMPTS


class Looked(InternalFlow):
    name = "looked"
    trigger = REPAIR_STATE


class StoreThatComesBack:
    """A store that fails for the first graph and accepts the second."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def start(self, runs: tuple[NewRun, ...], *, key: str | None) -> Started:
        self.asked.append(runs[0].parameters["sessions"])
        if len(self.asked) == 1:
            raise Unavailable("The store does not answer.")
        return Started({})

    async def sweep(self, *, waited_s: float) -> Swept:
        return Swept()


def sweeper(store: StoreThatComesBack, *flows: type[InternalFlow]) -> RunExecutor:
    ports = cast("Any", store)
    return RunExecutor(Catalogue(flows), ports, ports, MagicMock(), MagicMock(), local=False)


async def test_sessions_of_a_dead_worker_are_looked_through_once_the_store_answers() -> None:
    store = StoreThatComesBack()
    executor = sweeper(store, Looked)
    executor.repair_later([SessionId("a")])
    with pytest.raises(Unavailable):
        await executor.sweep()
    executor.repair_later([SessionId("b")])

    for _ in range(2):
        await executor.sweep()

    assert store.asked == [["a"], ["a", "b"]]


async def test_without_the_flow_that_looks_nothing_is_asked_for() -> None:
    store = StoreThatComesBack()
    executor = sweeper(store)
    executor.repair_later([SessionId("a")])

    await executor.sweep()

    assert store.asked == []
