"""Preparation of worker processes by the queues that they consume."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from parley.roles import QUEUES, Role
from workers import worker_lifecycle


@pytest.mark.parametrize(
    ("role", "prepared"),
    [(Role.TURNS, ["fork server"]), (Role.WORKER, []), (Role.SUBMISSIONS, []), (Role.INTERNAL, ["nice 7"])],
)
def test_only_workers_for_turns_alone_fork_a_server(
    role: Role, prepared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """RT-11: a takeover can't wait until a server has imported everything. One worker for all queues saves memory."""
    done: list[str] = []
    monkeypatch.setattr(worker_lifecycle, "ForkServer", lambda _: done.append("fork server"))
    monkeypatch.setattr(os, "nice", lambda number: done.append(f"nice {number}"))
    app = SimpleNamespace(
        amqp=SimpleNamespace(queues=SimpleNamespace(consume_from=dict.fromkeys(QUEUES[role])))
    )
    settings = SimpleNamespace(heartbeat_file=None, background_nice=7)
    lifecycle = worker_lifecycle.WorkerLifecycle(
        cast("Any", app), cast("Any", settings), cast("Any", None), cast("Any", None)
    )

    lifecycle.prepare()

    assert done == prepared
