"""What is asked for while it is at work: it is joined, and done once more at its end (IF-11)."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.ports.runs.records import NewRun, RunRecord
from orchestrator.ports.runs.status import ENDED, RunStatus
from orchestrator.types import DEFAULT_TENANT, SessionId, new_id
from tests.contract.internal.conftest import OnWorkers


async def test_what_was_asked_for_meanwhile_is_done_once_more(on_workers: OnWorkers) -> None:
    """IF-11: however often it was asked for, with what was given last."""

    def asked(given: int) -> NewRun:
        return on_workers.catalogue.new_run(
            "doubling",
            inputs=(given,),
            parameters={"takes_s": 0.5},
            flight="again",
            session_id=SessionId("again"),
        )

    first = await on_workers.start((asked(1),))
    for given in (2, 3):
        joined = await on_workers.start((asked(given),))
        assert (joined.joined, joined.runs) == (True, first.runs)
    await on_workers.chain_ended(first.runs["doubling"])
    [second, _] = await on_workers.runs.list(DEFAULT_TENANT, session_id=SessionId("again"))
    await on_workers.chain_ended(second.run_id)

    runs = await on_workers.runs.list(DEFAULT_TENANT, session_id=SessionId("again"))
    assert [run.closing for run in runs] == [[6], [2]]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_graph_that_is_at_work_is_started_once_more_at_its_end(
    fails: bool, on_workers: OnWorkers
) -> None:
    """IF-11: also when its first node fails; a message that comes twice asks once."""
    session = SessionId(new_id("session"))
    told = {"n0": {"takes_s": 0.6, "fail": fails}}
    nodes = tuple(
        on_workers.catalogue.new_run(
            name, parameters=told, session_id=session, flight=session, depends_on=needed
        )
        for name, needed in (("n0", ()), ("n1", ("n0",)))
    )
    first = await on_workers.start(nodes, key=f"first:{session}")
    while (await on_workers.runs.get(DEFAULT_TENANT, first.runs["n0"])).status != RunStatus.RUNNING:
        await asyncio.sleep(0.02)
    await on_workers.start(nodes, key=f"first:{session}")
    for number in range(3):
        assert (await on_workers.start(nodes, key=f"{number}:{session}")).joined
    runs: list[RunRecord] = []
    while len(runs) < 4 or not all(run.status in ENDED for run in runs):
        await asyncio.sleep(0.05)
        runs = await on_workers.runs.list(DEFAULT_TENANT, session_id=session)

    await asyncio.sleep(1)
    assert len(await on_workers.runs.list(DEFAULT_TENANT, session_id=session)) == 4
    assert {run.status.value for run in runs} == ({"failed", "blocked"} if fails else {"done"})
    assert len({run.graph_id for run in runs}) == 2
