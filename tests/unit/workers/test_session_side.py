"""Session data for session flows, and the delivery of their proposals (IF-12, IF-17)."""

from __future__ import annotations

from itertools import count
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from internal_flows.catalogue import Catalogue
from internal_flows.stages import InternalFlow, RunContext
from orchestrator.errors import SessionClosed, Unavailable
from orchestrator.ports.runs.status import Phase
from orchestrator.ports.runs.work import ClaimedItem, ItemsClaim, Recorded, RunClaim, RunEnd, RunFacts
from orchestrator.types import DEFAULT_TENANT, Epoch, Json, JsonObject, SessionId, TenantId
from workers.internal.executor import RunExecutor
from workers.internal.session_side import NotedProposals, SessionSide

OPEN, CLOSED = SessionId("open"), SessionId("closed")


class Curious(InternalFlow):
    name = "curious"
    trigger = "curious"
    material = ("history",)
    tools = ("proposals",)

    async def before_all(self, run: RunContext) -> None:
        await propose(run, OPEN, "abandon")

    async def output(self, run: RunContext, item: Any, data: Any, result: Any) -> None:
        await propose(run, OPEN, "summary")

    async def after_all(self, run: RunContext, outputs: list[Any]) -> None:
        await propose(run, OPEN, "repair")


class Pad:
    async def put(self, *_: Any, operation: str) -> list[str]:
        return [operation]


class Session:
    """Material, and lanes that fail at first."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.submitted: list[str] = []
        self.answers = True

    async def collect(
        self, tenant_id: TenantId, session_id: SessionId, names: tuple[str, ...]
    ) -> dict[str, str]:
        self.asked.append(names)
        return dict.fromkeys(names, f"of {session_id}")

    async def submit(
        self, tenant_id: TenantId, session_id: SessionId, name: str, payload: JsonObject, *, key: str
    ) -> str:
        if not self.answers:
            raise Unavailable("The database does not answer.")
        if session_id == CLOSED:
            raise SessionClosed(session_id)
        self.submitted.append(key)
        return key


CATALOGUE = Catalogue([Curious], tools={"proposals": NotedProposals(Pad())})  # type: ignore[arg-type]


def facts_of(session_id: SessionId | None) -> RunFacts:
    return RunFacts("run", DEFAULT_TENANT, session_id, "curious", None, {}, {}, {}, None)


def begin(side: SessionSide, session_id: SessionId | None = OPEN) -> RunContext:
    return side.equip(CATALOGUE.context(facts_of(session_id)))


async def propose(context: RunContext, session_id: SessionId, kind: str = "repair") -> None:
    await context.tools["proposals"].propose(
        DEFAULT_TENANT, session_id, kind, {}, epoch=Epoch(1), flow="curious", run_id="run"
    )


async def test_a_run_is_given_what_its_flow_declares_and_nothing_without_a_session() -> None:
    session = Session()
    side = SessionSide(session, session)

    assert (await side.brief(Curious(), begin(side))).material == {"history": "of open"}
    assert (await side.brief(Curious(), begin(side, None))).material == {"history": None}
    assert session.asked == [("history",)]


async def test_a_proposal_that_could_not_be_handed_over_is_kept_and_one_for_a_closed_session_is_dropped() -> (
    None
):
    session = Session()
    side = SessionSide(session, session)
    context, other = begin(side), begin(side)
    await propose(context, CLOSED)
    await propose(context, OPEN)

    session.answers = False
    with pytest.raises(Unavailable):
        await side.hand_over(context)
    session.answers = True
    for one in (other, context, context):
        await side.hand_over(one)

    assert session.submitted == ["proposal:run:open:repair"]


class OneRun:
    """A run with one item, as a worker claims and records it, with the messages to its session before each record."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tokens = count(1)
        self.told_before: list[list[str]] = []

    def _record(self) -> None:
        self.told_before.append([key.rpartition(":")[2] for key in self._session.submitted])

    async def claim(self, run_id: str, config: JsonObject, *, waited_s: float) -> RunClaim:
        phase = Phase.AFTER if self.told_before else Phase.BEFORE
        return RunClaim(facts_of(OPEN), next(self._tokens), phase, 1, ("input",))

    async def claim_items(self, run_id: str, *, task_id: str | None, waited_s: float) -> ItemsClaim:
        return ItemsClaim(facts_of(OPEN), next(self._tokens), (ClaimedItem(0, "input", 1),))

    async def begin_items(self, *_: Any) -> bool:
        self._record()
        return True

    async def record_items(self, *_: Any, last: bool) -> Recorded:
        self._record()
        return Recorded.ALL

    async def outputs(self, run_id: str) -> list[Json]:
        return [None]

    async def finish(self, claim: RunClaim, end: RunEnd) -> tuple[()]:
        self._record()
        return ()

    def give_up(self, token: int) -> None: ...


def run_by_worker(session: Session, work: OneRun) -> RunExecutor:
    side, nothing = SessionSide(session, session), MagicMock()
    return RunExecutor(CATALOGUE, nothing, cast("Any", work), nothing, side, local=False)


async def test_no_stage_is_recorded_before_its_session_was_told_what_it_proposes() -> None:
    """Otherwise, a crash in between would lose the proposal."""
    session = Session()
    work = OneRun(session)

    await run_by_worker(session, work).run("run", "curious")

    assert work.told_before == [["abandon"], ["abandon", "summary"], ["abandon", "summary", "repair"]]


async def test_an_item_whose_session_could_not_be_told_is_not_recorded() -> None:
    session = Session()
    work = OneRun(session)
    session.answers = False

    with pytest.raises(Unavailable):
        await run_by_worker(session, work).items("run", "curious", task_id="share", in_chord=True)

    assert work.told_before == []


def test_material_that_there_is_not_is_a_mistake_of_its_flow() -> None:
    class Greedy(Curious):
        material = ("everything",)

    [problem] = Catalogue([Greedy], tools={"proposals": None}).off["curious"]

    assert "unknown material 'everything'; available: conversation, habits, history" in str(problem)
