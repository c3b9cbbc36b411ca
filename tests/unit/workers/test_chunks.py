"""Chunks of turns: a redelivered message joins the turns of its first delivery."""

from __future__ import annotations

from typing import Any

from celery import Celery
from celery.exceptions import Ignore
from celery.signals import before_task_publish

from orchestrator.bootstrap import build_agent
from orchestrator.ports.tasks import SUBMIT_TURN
from orchestrator.settings import read_settings
from workers.app import create_app
from workers.tasks import _replace_chunks  # pyright: ignore[reportPrivateUsage]


def test_a_second_delivery_sends_the_same_calls_of_the_same_chord() -> None:
    sent: list[tuple[str, str]] = []

    def note(headers: dict[str, Any], **_: Any) -> None:
        if headers["task"] == SUBMIT_TURN:
            sent.append((headers["id"], headers["group"]))

    before_task_publish.connect(note, weak=False)
    try:
        with Celery(set_as_current=False, broker="memory://", backend="cache+memory://") as app:
            _replace_chunks(app)
            for _ in range(2):
                deliver(app, dict(app.signature(SUBMIT_TURN)), [("ann", "hello"), ("bob", "hello")])
    finally:
        before_task_publish.disconnect(note)

    first, second = sent[:2], sent[2:]
    assert first == second
    assert len({group for _, group in first}) == 1
    assert len({task for task, _ in first}) == 2


def test_workers_run_chunks_by_these_tasks_and_start_without_warnings() -> None:
    settings = read_settings(DATABASE_URL="postgresql://x/y", REDIS_URL="redis://redis.example/0")
    app: Any = create_app(settings, build_agent)
    app.finalize()
    for name in ("celery.starmap", "celery.map", "celery.accumulate"):
        assert app.tasks[name].run.__module__ == "workers.tasks"


def deliver(app: Celery, task: dict[str, Any], calls: list[tuple[str, str]]) -> None:
    starmap: Any = app.tasks["celery.starmap"]
    starmap.push_request(id="chunk", called_directly=False, is_eager=False, delivery_info={})
    try:
        starmap.run(task, calls)
    except Ignore:
        pass
    finally:
        starmap.pop_request()
