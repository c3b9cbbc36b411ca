"""What a session flow is given of its session, and what becomes of its proposals (IF-12, IF-17)."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from internal_flows.catalogue import Catalogue
from internal_flows.stages import InternalFlow, RunContext
from orchestrator.errors import SessionClosed, Unavailable
from orchestrator.ports.runs.work import ClaimedItem, ItemEnd, ItemsClaim, Recorded, RunFacts
from orchestrator.types import DEFAULT_TENANT, Epoch, JsonObject, SessionId, TenantId
from workers.internal.executor import RunExecutor
from workers.internal.session_side import NotedProposals, SessionSide

OPEN, CLOSED = SessionId("open"), SessionId("closed")


class Curious(InternalFlow):
    name = "curious"
    trigger = "curious"
    material = ("history",)
    tools = ("proposals",)

    async def output(self, run: RunContext, item: Any, data: Any, result: Any) -> None:
        await propose(run, OPEN)


class Pad:
    async def put(self, *_: Any, operation: str) -> list[str]:
        return [operation]


class Session:
    """Material, and lanes that do not answer at first."""

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


async def propose(context: RunContext, session_id: SessionId) -> None:
    await context.tools["proposals"].propose(
        DEFAULT_TENANT, session_id, "repair", {}, epoch=Epoch(1), flow="curious", run_id="run"
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


class OneItem:
    """The items of a run, as a worker claims and records them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.told_before: list[str] | None = None

    async def claim_items(self, run_id: str, *, waited_s: float) -> ItemsClaim | None:
        claim = ItemsClaim(facts_of(OPEN), 1, (ClaimedItem(0, "input", 1),))
        return claim if self.told_before is None else None

    async def record_items(self, claim: ItemsClaim, ends: tuple[ItemEnd, ...], *, last: bool) -> Recorded:
        self.told_before = [*self.session.submitted]
        return Recorded.ALL

    def give_up(self, token: int) -> None: ...


async def test_an_item_is_recorded_once_its_session_was_told_what_it_proposes() -> None:
    """Else a worker that dies in between would leave a proposal that nobody is told of."""
    session = Session()
    work = OneItem(session)
    side, nothing = SessionSide(session, session), MagicMock()
    executor = RunExecutor(CATALOGUE, nothing, cast("Any", work), nothing, side, local=False)

    session.answers = False
    with pytest.raises(Unavailable):
        await executor.items("run", "curious", in_chord=True)
    assert work.told_before is None
    session.answers = True
    await executor.items("run", "curious", in_chord=True)

    assert work.told_before == session.submitted == ["proposal:run:open:repair"]


def test_material_that_there_is_not_is_a_mistake_of_its_flow() -> None:
    class Greedy(Curious):
        material = ("everything",)

    [problem] = Catalogue([Greedy], tools={"proposals": None}).off["curious"]

    assert "there is no material 'everything'; there are conversation, habits, history" in str(problem)
