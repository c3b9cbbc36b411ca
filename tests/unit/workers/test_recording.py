"""What a stage asked of its tools is answered from its record, and nothing else is (IF-2, RT-8)."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from typing import Any

import orjson
import pytest

from internal_flows.execution import Done, run_after_all
from internal_flows.recording import RECORDS, TOOL, RecordedCalls, record
from internal_flows.stages import InternalFlow, RunContext
from orchestrator.adapters.postgres.housekeeping import PostgresHousekeeping
from orchestrator.adapters.postgres.memory.documents import PostgresDocuments
from orchestrator.adapters.postgres.memory.preferences import PostgresPreferences
from orchestrator.adapters.postgres.memory.records import PostgresCollectionRows
from orchestrator.adapters.redis.scratchpad import RedisScratchpad
from orchestrator.errors import NotFound, Unavailable
from orchestrator.memory.business_context import BusinessContext
from orchestrator.memory.search import RememberedContext
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.types import DEFAULT_TENANT, Json, SessionId
from workers.internal.session_side import NotedProposals

NOTE = Entry("mine", "turn 1", EntryKind.FINDING, 1.0, text="a note", labels=("private",), entry_id="one")
TOOLS = (
    *(RedisScratchpad, NotedProposals, PostgresPreferences, BusinessContext, PostgresDocuments),
    *(RememberedContext, PostgresCollectionRows, PostgresHousekeeping),
)


def records_in(hint: Any) -> Iterator[str]:
    if is_dataclass(hint):
        yield typing.cast("type", hint).__name__
    for part in typing.get_args(hint):
        yield from records_in(part)


@pytest.mark.parametrize("tool", TOOLS)
def test_every_record_that_a_tool_gives_is_read_again_as_one(tool: type) -> None:
    methods = [
        one for name, one in inspect.getmembers(tool, inspect.iscoroutinefunction) if not name.startswith("_")
    ]
    assert methods
    given = {name for one in methods for name in records_in(typing.get_type_hints(one).get("return"))}
    assert given <= RECORDS.keys()


class Shelf:
    space = "hash-256"

    async def read(self, session_id: str, *, kinds: frozenset[EntryKind] = frozenset()) -> list[Entry]:
        return [NOTE] if kinds else []

    def of(self, tenant: str) -> Shelf:
        del tenant
        return self

    async def find(self, name: str) -> tuple[str, int]:
        if name == "gone":
            raise NotFound("thing", name)
        return name, 3


class Looks(InternalFlow):
    name = "looks"
    text = "here"

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        shelf = run.tools["shelf"]
        [note] = await shelf.read(run.session_id, kinds=frozenset({EntryKind.FINDING, EntryKind.RESULT}))
        assert isinstance(note, Entry)
        name, count = await shelf.of(run.tenant_id).find(self.text)
        try:
            await shelf.inner.find("gone")
        except NotFound as error:
            return [note.labels, note.text, name, count, shelf.space, str(error), run.now]
        return None


Shelf.inner = Shelf()  # pyright: ignore[reportAttributeAccessIssue]


async def recorded(flow: InternalFlow, context: RunContext) -> tuple[Any, list[Any]]:
    overheard, calls = record(flow, context)
    result = await run_after_all(flow, overheard, [])
    return result, orjson.loads(orjson.dumps(calls.close(flow, context, result)))["steps"]


async def test_the_same_calls_get_the_same_answers_and_errors() -> None:
    context = RunContext(
        "run_1", "looks", DEFAULT_TENANT, SessionId("one"), tools={"shelf": Shelf()}, now=7.0
    )
    then, steps = await recorded(Looks(), context)
    assert isinstance(then, Done)
    calls = RecordedCalls(steps)

    now = await run_after_all(Looks(), replace(context, tools={"shelf": calls.tool("shelf")}), [])

    assert now == then
    assert (calls.missed, calls.unused) == ([], [])


async def test_other_arguments_are_told_and_get_what_the_tool_gave_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = RunContext("run_1", "looks", DEFAULT_TENANT, SessionId("one"), tools={"shelf": Shelf()})
    _, steps = await recorded(Looks(), context)
    calls = RecordedCalls(steps)
    monkeypatch.setattr(Looks, "text", "there")

    now = await run_after_all(Looks(), replace(context, tools={"shelf": calls.tool("shelf")}), [])

    assert isinstance(now, Done)
    assert now.value[2] == "here"
    [missed], [unused] = calls.missed, calls.unused
    assert (missed["key"], missed["request"], unused["request"]) == (
        'shelf.of("default").find',
        [["there"], {}],
        [["here"], {}],
    )
    with pytest.raises(Unavailable):
        await calls.tool("shelf").write("new")
    assert calls.missed[-1] == {"key": "shelf.write", "kind": TOOL, "request": [["new"], {}]}


async def test_a_flow_that_keeps_no_record_has_its_tools_as_they_are() -> None:
    context = RunContext("run_1", "looks", DEFAULT_TENANT, None, tools={"shelf": (shelf := Shelf())})
    plain, calls = record(Looks(), context)
    assert plain.tools["shelf"] is shelf
    assert calls.close(Looks(), context, Done(None)) is None
