"""Requests for a flow that is already running: they join the run, and the flow runs again afterwards (IF-11)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from orchestrator.adapters.postgres.runs import runs as senders
from orchestrator.ports.runs.records import NewRun, RunRecord
from orchestrator.ports.runs.status import ENDED
from orchestrator.types import DEFAULT_TENANT, SessionId, new_id
from tests.contract.internal.conftest import OnWorkers

WITHIN_S = 40


async def test_what_was_asked_for_meanwhile_is_done_once_more(on_workers: OnWorkers, tmp_path: Path) -> None:
    """IF-11: several requests cause one rerun, with the last inputs."""
    session, may_end = SessionId(new_id("session")), tmp_path / "may-end"

    def asked(given: int) -> NewRun:
        return on_workers.catalogue.new_run(
            "doubling",
            inputs=(given,),
            parameters={"until": str(may_end)},
            flight=session,
            session_id=session,
        )

    first = await on_workers.start((asked(1),))
    for given in (2, 3):
        joined = await on_workers.start((asked(given),))
        assert (joined.joined, joined.runs) == (True, first.runs)
    may_end.touch()
    await on_workers.chain_ended(first.runs["doubling"])
    [second, _] = await on_workers.runs.list(DEFAULT_TENANT, session_id=session)
    await on_workers.chain_ended(second.run_id)

    runs = await on_workers.runs.list(DEFAULT_TENANT, session_id=session)
    assert [run.closing for run in runs] == [[6], [2]]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_graph_that_is_at_work_is_started_once_more_at_its_end(
    fails: bool, on_workers: OnWorkers, tmp_path: Path
) -> None:
    """IF-11: even if its first node fails. A repeated message counts once."""
    session, may_end = SessionId(new_id("session")), tmp_path / "may-end"
    told = {"n0": {"until": str(may_end), "fail": fails}}
    nodes = tuple(
        on_workers.catalogue.new_run(
            name, parameters=told, session_id=session, flight=session, depends_on=needed
        )
        for name, needed in (("n0", ()), ("n1", ("n0",)))
    )
    first = await on_workers.start(nodes, key=f"first:{session}")
    await on_workers.is_at_work(first.runs["n0"])
    await on_workers.start(nodes, key=f"first:{session}")
    for number in range(3):
        assert (await on_workers.start(nodes, key=f"{number}:{session}")).joined
    may_end.touch()
    runs: list[RunRecord] = []
    async with asyncio.timeout(WITHIN_S):
        while len(runs) < 4 or not all(run.status in ENDED for run in runs):
            await asyncio.sleep(0.05)
            runs = await on_workers.runs.list(DEFAULT_TENANT, session_id=session)

    assert len(runs) == 4, "what ends a run starts what follows it in the same transaction"
    assert {run.status.value for run in runs} == ({"failed", "blocked"} if fails else {"done"})
    assert len({run.graph_id for run in runs}) == 2


async def test_redoing_a_run_by_hand_starts_no_graph_that_was_started_before(
    on_workers: OnWorkers, tmp_path: Path
) -> None:
    """IF-11: a stored request starts only once."""
    session, may_end = SessionId(new_id("session")), tmp_path / "may-end"

    def asked() -> NewRun:
        parameters = {"until": str(may_end)}
        return on_workers.catalogue.new_run(
            "doubling", inputs=(1,), parameters=parameters, flight=session, session_id=session
        )

    first = await on_workers.start((asked(),))
    assert (await on_workers.start((asked(),))).joined
    may_end.touch()
    await on_workers.chain_ended(first.runs["doubling"])
    for run in await on_workers.runs.list(DEFAULT_TENANT, session_id=session):
        await on_workers.chain_ended(run.chain_id)

    await on_workers.redo(first.runs["doubling"])

    assert len(await on_workers.runs.list(DEFAULT_TENANT, session_id=session)) == 3


async def test_nodes_that_were_stored_beside_joined_ones_are_sent_although_the_rest_ended_meanwhile(
    on_workers: OnWorkers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """IF-11: their messages do not wait for the reconciler."""
    session, may_end = SessionId(new_id("session")), tmp_path / "may-end"
    remember = senders.remember_again
    answers = iter([False])

    async def ended_once(*arguments: Any) -> bool:
        return next(answers, None) is None and await remember(*arguments)

    def node(name: str) -> NewRun:
        parameters = {"n0": {"until": str(may_end)}}
        return on_workers.catalogue.new_run(name, parameters=parameters, session_id=session, flight=session)

    first = await on_workers.start((node("n0"),))
    await on_workers.is_at_work(first.runs["n0"])
    monkeypatch.setattr(senders, "remember_again", ended_once)

    started = await on_workers.runs.start((node("n0"), node("n1")))
    may_end.touch()

    assert [hint.flow for hint in started.hints] == ["n1"]
