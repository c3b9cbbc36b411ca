"""Data that a replayed turn can read: what existed when the turn ran, and nothing later."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from lab.replay.comparing import compare
from lab.replay.recordings import RecordedRun, RecordedSession, RecordedTurn
from lab.replay.report import MOST_KEPT, count_forbidden, keep, sum_up, tell
from lab.replay.running import Wanted
from lab.replay.sandbox import Moment, RecordedGathering, RecordedJournal, RecordedLane, Replayed
from orchestrator.errors import ModelUnavailable
from orchestrator.ports.memory.context import ContextQuestion, Findings
from orchestrator.runtime.journal import TOOL
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision
from orchestrator.turns.effect import Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.step import NotBegun, Step, StepStatus
from orchestrator.turns.turn import TurnInput, TurnStatus
from orchestrator.types import (
    DEFAULT_TENANT,
    Epoch,
    FlowId,
    Json,
    JsonObject,
    SessionId,
    ToolId,
    TurnId,
    hash_json,
)
from tests.cases import for_each

END = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
LATER = END + timedelta(seconds=1)
SESSION = SessionId("one")
ASKED = {"tool_id": "find", "arguments": {"day": "today"}}


def turn(number: int, *steps: Step) -> RecordedTurn:
    return RecordedTurn(
        TurnId(f"turn-{number}"), number, Epoch(number), TurnInput("hello"), None, 0.0, END, {}, [], steps
    )


def session(*turns: RecordedTurn, **members: Any) -> RecordedSession:
    return RecordedSession(SESSION, DEFAULT_TENANT, None, "travel", turns=list(turns), **members)


def moment(of: RecordedSession, at_work: RecordedTurn) -> Moment:
    made = Moment()
    made.session, made.turn = of, at_work
    return made


def lease(of: RecordedTurn) -> Lease:
    work = Work(of.turn_id, of.seq, of.input, 1, 60.0, steps=of.steps)
    return Lease(SESSION, DEFAULT_TENANT, None, "travel", 0, Epoch(of.epoch - 1), None, work)


def entry(number: int, status: LedgerStatus = LedgerStatus.DONE) -> LedgerEntry:
    where = (SESSION, f"print-{number}", TurnId(f"turn-{number}"), "tool:book:1", "key")
    return LedgerEntry(*where, FlowId("flow"), ToolId("book"), {}, {}, status)


def effect(number: int) -> Effect:
    return Effect(f"print-{number}", FlowId("flow"), ToolId("book"), {}, {}, lambda _: LedgerStatus.DONE)


async def refuse(key: str) -> Json:
    raise AssertionError(f"{key} was called")


async def test_a_call_is_answered_where_the_same_was_asked_and_otherwise_not_made() -> None:
    recorded = turn(1, Step("tool:find:1", TOOL, StepStatus.FINISHED, hash_json(ASKED), {"rows": 3}))
    journal = RecordedJournal(RecordedLane(moment(session(recorded), recorded)), lease(recorded), asks=False)

    other = {**ASKED, "arguments": {"day": "tomorrow"}}
    changing = await journal.call("tool:find:1", TOOL, other, refuse, idempotent=False, effect=effect(1))
    known = await journal.call("tool:find:2", TOOL, ASKED, refuse, idempotent=True)
    with pytest.raises(ModelUnavailable):
        await journal.call("model:nlu_think:abc:1", "model", "abc", refuse, idempotent=True)

    assert (changing, known) == (NotBegun(), {"rows": 3})
    assert [key for key, _ in journal.missed] == ["tool:find:1", "model:nlu_think:abc:1"]
    assert (journal.unused, journal.stopped) == ({}, False)


async def test_only_models_are_asked_and_only_where_they_are_to_be() -> None:
    async def answer(key: str) -> Json:
        return f"answered {key}"

    recorded = turn(1, Step("model:nlu_think:abc:1", "model", StepStatus.FINISHED, hash_json("abc"), "old"))
    journal = RecordedJournal(RecordedLane(moment(session(recorded), recorded)), lease(recorded), asks=True)

    key = "model:nlu_think:abc:1"
    assert await journal.call(key, "model", "abc", answer, idempotent=True) == f"answered {key}"
    assert await journal.call("tool:find:1", TOOL, ASKED, refuse, idempotent=True) == NotBegun()


async def test_the_ledger_is_that_of_the_turns_before() -> None:
    turns = [turn(number) for number in (1, 2, 3)]
    ledger = [
        entry(1),
        entry(2, LedgerStatus.COMPENSATED),
        entry(3),
        entry(7),
    ]  # the last one is the parent's, in a fork
    lane = RecordedLane(moment(session(*turns, ledger=ledger), turns[1]))

    held = [await lane.find_effect(lease(turns[1]), effect(number)) for number in (1, 2, 3, 7)]
    assert held == [entry(1), None, None, entry(7)]
    own = await lane.adopt_effect(
        lease(turns[1]), turns[1].turn_id, "tool:book:1", fingerprint="x", flow_id=FlowId("f")
    )
    assert own == entry(2)  # undone later


@for_each(
    ("status", "decided_at", "granted", "expected"),
    [
        (
            ApprovalStatus.USED,
            END,
            False,
            ApprovalStatus.GRANTED,
        ),  # a decision was made, independent of the replay
        (ApprovalStatus.DENIED, END, True, ApprovalStatus.DENIED),
        (ApprovalStatus.USED, LATER, False, ApprovalStatus.DENIED),
        (ApprovalStatus.VOID, None, True, ApprovalStatus.GRANTED),
    ],
)
async def test_an_approval_is_as_it_was(
    status: ApprovalStatus, decided_at: datetime | None, *, granted: bool, expected: ApprovalStatus
) -> None:
    whose = ("approval", SESSION, TurnId("turn-0"), FlowId("flow"), ToolId("book"), "print", {}, LATER)
    record = ApprovalRecord(*whose, status=status, decided_at=decided_at)
    lane = RecordedLane(moment(session(turn(1), approvals={"approval": record}), turn(1)))

    found = await lane.decide_approval(lease(turn(1)), "approval", Decision(granted, "ada"))
    assert found is not None
    assert found.status is expected
    assert await lane.decide_approval(lease(turn(1)), "another", Decision(granted, "ada")) is None
    strict = replace(record, operator_only=True, decided_at=None)
    lane = RecordedLane(moment(session(turn(1), approvals={"approval": strict}), turn(1)))
    left = await lane.decide_approval(lease(turn(1)), "approval", Decision(True, "ada"))
    assert left is not None
    assert left.status is ApprovalStatus.PENDING


async def test_what_was_looked_for_is_found_when_it_had_been_by_then() -> None:
    found = {"source": "memory", "text": "Oslo", "values": {}, "score": 1.0, "labels": []}
    runs = {
        "in time": RecordedRun("turn-1", END, [found]),
        "late": RecordedRun("turn-2", LATER, [found]),
        "failed": RecordedRun("turn-3", END, None),
    }
    moment = Moment()
    moment.session, moment.turn = session(turn(1), runs=runs), turn(1)
    gathering = RecordedGathering(moment)
    who = (DEFAULT_TENANT, SESSION, None, TurnId("turn-1"), FlowId("flow"), "travel", "book_flight", "where?")

    assert await gathering.begin(ContextQuestion(*who)) == "in time"
    waited = await gathering.wait(DEFAULT_TENANT, "in time", 1.0)
    assert waited is not None
    assert [one.text for one in waited.found] == ["Oslo"]
    assert await gathering.wait(DEFAULT_TENANT, "late", 1.0) is None
    assert await gathering.wait(DEFAULT_TENANT, "", 1.0) is None
    assert await gathering.wait(DEFAULT_TENANT, "failed", 1.0) == Findings()


def test_one_that_may_not_differ_is_counted_behind_however_many_that_may(tmp_path: Path) -> None:
    def outcome(name: str, epochs: int, aspect: str) -> JsonObject:
        turns = [
            {"turn": f"{name}-{epoch}", "epoch": epoch, "said": "hello", "remembers": False}
            for epoch in range(1, epochs + 1)
        ]
        counted: JsonObject = {"turns": epochs, "left_out": {}, "not_made": {}, "remembering": 0}
        return {
            "session": name,
            **counted,
            "different": [{**one, "changes": {aspect: [{"at": "", "then": 1, "now": 2}]}} for one in turns],
        }

    many = [outcome("agreed", MOST_KEPT + 1, "calls"), outcome("worded", MOST_KEPT + 1, "answer")]
    report = sum_up("travel", Wanted(), [*many, outcome("broken", 1, "calls")], 1.0, frozenset({"agreed"}))

    assert count_forbidden(report, {"calls"}) == 1
    assert count_forbidden(report, ()) == MOST_KEPT + 2
    assert report["differing"] == 2 * MOST_KEPT + 3
    kept = orjson.loads(keep(report, tmp_path).read_bytes())
    assert (len(kept["different"]), kept["differing"]) == (MOST_KEPT, 2 * MOST_KEPT + 3)
    assert f"{2 * MOST_KEPT + 3} changed." in "\n".join(tell(report))


def digits(number: int) -> str:
    return f"{number:032x}"


FRAME = {"frame_id": f"frame_{digits(1)}", "flow_id": f"flow_{digits(2)}", "rows": [{"flow": digits(2)}]}


@for_each(
    ("now", "places"),
    [
        (FRAME, []),
        (
            {"frame_id": f"frame_{digits(7)}", "flow_id": f"flow_{digits(8)}", "rows": [{"flow": digits(9)}]},
            [],
        ),
        ({**FRAME, "flow_id": f"plan_{digits(2)}"}, [{"at": "1.flow_id", "then": "flow_1", "now": "plan_1"}]),
        (
            {**FRAME, "rows": [{"flow": f"{digits(2)}0"}]},
            [{"at": "1.rows.1.flow", "then": "3", "now": f"{digits(2)}0"}],
        ),
        ({**FRAME, "rows": [{"flow": "none"}]}, [{"at": "1.rows.1.flow", "then": "3", "now": "none"}]),
    ],
)
def test_identifiers_are_compared_by_their_order(now: JsonObject, places: list[JsonObject]) -> None:
    """A longer sequence of digits is not an ID."""

    def result(frame: JsonObject) -> JsonObject:
        names = ("flows", "completed", "tools", "earlier_frames", "actions")
        none: JsonObject = dict.fromkeys(names, ())
        return {**none, "ambiguity": None, "reply": "", "frame": frame, "interaction": None}

    recorded = replace(turn(1), result=result(FRAME))
    commit = TurnCommit(TurnStatus.DONE, b"", b"", snapshot=False, result=result(now))

    changes = compare(recorded, Replayed(commit, [], [], remembers=False))

    assert changes == ({"display": places} if places else {})
