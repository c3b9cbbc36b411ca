"""Take the conversations of a domain's `evaluations/` through the real Agent, and see what comes of each turn.

Each conversation has stores in memory of its own. What is measured of the outcomes is `scores`' business.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import yaml
from pydantic import ValidationError

from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.adapters.models.pool import ModelPool
from orchestrator.domain.configuration import merge_sections
from orchestrator.domain.evaluations import ConversationEntry, EvaluationFile, ExpectEntry
from orchestrator.errors import InvalidInput
from orchestrator.nlu.readers.system1 import System1
from orchestrator.res.markup import to_plain
from orchestrator.simulator import START, Simulator
from orchestrator.telemetry import Signal, SignalType
from orchestrator.types import Json, JsonObject
from parley.evaluation.rubric import Judge, Verdict, judge_answer

REFERENCE = re.compile(r"\b(?=\w*\d)(?=\w*[A-Z])[A-Z0-9]{5,}\b")
"""A reference that a tool made, which is another in every run."""


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """One turn: what was said, what was expected, and what came. `faults`: what is not as expected, in words.

    `observed`: by the names of what is expected, with `source`, who understood the message, and `answer`.
    `verdicts`: of the answer by its rubric.
    """

    said: str
    expect: ExpectEntry
    observed: JsonObject
    faults: list[str]
    verdicts: list[Verdict] = field(default_factory=list[Verdict])


@dataclass(frozen=True, slots=True)
class Outcome:
    """One conversation. `file`: where it is written."""

    file: str
    name: str
    turns: list[TurnOutcome]

    @property
    def is_right(self) -> bool:
        return not any(turn.faults for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What conversations are taken through. `sections`: configuration laid over the domain's own.

    `judge`: judges what of answers no rule can; without one, that is not judged.
    """

    loaded: LoadedDomain
    system1: System1
    models: ModelPool | None = None
    sections: JsonObject = field(default_factory=JsonObject)
    judge: Judge | None = None


def read_file(path: Path) -> EvaluationFile:
    """Read conversations. Raises InvalidInput for a file that is none."""
    try:
        return EvaluationFile.model_validate(yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise InvalidInput(f"{path} cannot be read: {str(error).splitlines()[0]}", field="path") from error


async def evaluate(
    files: Mapping[str, Sequence[ConversationEntry]],
    evaluated: Evaluated,
    notice: Callable[[str], None] = lambda _line: None,
    counted: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Outcome]:
    """Go through all conversations of files, by name. `counted`: given how many are done, of how many."""
    outcomes: list[Outcome] = []
    total = sum(len(conversations) for conversations in files.values())
    for file, conversations in files.items():
        for conversation in conversations:
            turns = await go_through(conversation, evaluated)
            outcomes.append(Outcome(file, conversation.name, turns))
            counted(len(outcomes), total)
        wrong = sum(not one.is_right for one in outcomes if one.file == file)
        many = "1 conversation" if len(conversations) == 1 else f"{len(conversations)} conversations"
        notice(f"{file}: {many}" + (f", {wrong} not as written" if wrong else ""))
    return outcomes


async def go_through(conversation: ConversationEntry, evaluated: Evaluated) -> list[TurnOutcome]:
    """Take every turn of a conversation, over stores of its own."""
    simulator = Simulator.of(
        evaluated.loaded,
        sections=merge_sections(conversation.config, evaluated.sections),
        models=evaluated.models,
        system1=evaluated.system1,
        at=beginning_of(conversation),
    )
    try:
        return await take_turns(conversation, simulator, evaluated.judge)
    finally:
        await simulator.close()


def beginning_of(conversation: ConversationEntry) -> datetime:
    return datetime.fromisoformat(conversation.now).replace(tzinfo=UTC) if conversation.now else START


async def take_turns(
    conversation: ConversationEntry, simulator: Simulator, judge: Judge | None = None
) -> list[TurnOutcome]:
    """Take every turn of a conversation; one that goes wrong does not end it."""
    talk = simulator.converse()
    remembered: dict[str, str] = {}
    outcomes: list[TurnOutcome] = []
    offered: list[JsonObject] = []
    before: list[str] = []
    for entry in conversation.turns:
        seen = len(simulator.signals)
        said = insert(entry.user or "", remembered) if entry.action is None else str(entry.action["name"])
        turn = await (
            talk.say(said) if entry.action is None else talk.act(said, payload_of(entry.action, offered))
        )
        offered = turn["actions"]
        observed = observe(turn, simulator.signals[seen:])
        faults = list(find_faults(entry.expect, observed))
        answer = to_plain(observed["answer"] or "")
        verdicts = await judge_answer(entry.expect.rubric, judge, said, answer, before)
        faults += [f"by the rubric it fails: {one.criterion}" for one in verdicts if one.met is False]
        before += [f"user: {said}", f"assistant: {answer}"]
        outcomes.append(TurnOutcome(said, entry.expect, observed, faults, verdicts))
        remembered |= values_of(turn)
    return outcomes


def payload_of(action: JsonObject, offered: Sequence[JsonObject]) -> JsonObject:
    """Give the payload that the last answer offered under this name with what is written, else what is written."""
    written: JsonObject = action.get("payload") or {}
    fitting = (one["payload"] for one in offered if one["name"] == action["name"])
    return next((one for one in fitting if written.items() <= one.items()), written)


def insert(text: str, remembered: Mapping[str, str]) -> str:
    """Replace ``<booking_ref>`` by the value that an earlier answer gave, as far as there is one."""
    return re.sub(r"<(\w+)>", lambda name: remembered.get(name[1], name[0]), text)


def insert_names(text: str, remembered: Mapping[str, str]) -> str:
    """Replace references that an earlier answer gave by their names: what `insert` undoes."""
    for name, value in remembered.items():
        if REFERENCE.fullmatch(value):
            text = re.sub(rf"\b{value}\b", f"<{name}>", text, flags=re.IGNORECASE)
    return text


def values_of(turn: JsonObject) -> dict[str, str]:
    """Give what an answer's frame tells, by name."""
    data = (turn["frame"] or {}).get("data")
    return {name: str(value) for name, value in data.items()} if isinstance(data, dict) else {}


def observe(turn: JsonObject, signals: Sequence[Signal]) -> JsonObject:
    """Say of a turn what may be expected of it."""
    predictions = [signal.payload for signal in signals if signal.type is SignalType.PREDICTION]
    predicted = predictions[0] if predictions else {}
    stack = [flow["dact"] for flow in turn["flows"]]
    broken = [one.payload for one in signals if one.source == "agent" and one.payload.get("ok") is False]
    return {
        "kind": predicted.get("kind"),
        "source": predicted.get("source"),
        "flow": stack[-1] if stack else (turn["completed"] or [None])[-1],
        "flows": stack,
        "completed": list(turn["completed"]),
        "tools": [tool["tool_id"] for tool in turn["tools"]],
        "arguments": [{tool["tool_id"]: tool["arguments"]} for tool in turn["tools"]],
        "ambiguity": (turn["ambiguity"] or {}).get("level", "none"),
        "slots": turn["flows"][-1]["slots"] if turn["flows"] else {},
        "answer": turn["reply"],
        "broken": [str(payload) for payload in broken],
        "status": turn["status"],
    }


def find_faults(expect: ExpectEntry, observed: JsonObject) -> Iterator[str]:
    """Say what is not as it should be."""
    for name in ("kind", "flow", "flows", "completed", "tools", "ambiguity"):
        wanted: Json = getattr(expect, name)
        wanted = list(wanted) if isinstance(wanted, tuple) else wanted
        if wanted is not None and wanted != observed[name]:
            yield f"{name} is {observed[name]!r}, not {wanted!r}"
    for name, value in expect.slots.items():
        if observed["slots"].get(name) != value:
            yield f"slot {name} is {observed['slots'].get(name)!r}, not {value!r}"
    for tool, wanted in expect.arguments.items():
        calls = [call[tool] for call in observed["arguments"] if tool in call]
        if not any(all(call.get(name) == value for name, value in wanted.items()) for call in calls):
            yield f"{tool} was called with {calls}, not with {dict(wanted)}"
    if expect.answer is not None and not re.search(expect.answer, observed["answer"]):
        yield f"the answer does not match {expect.answer!r}"
    if expect.not_answer is not None and re.search(expect.not_answer, observed["answer"]):
        yield f"the answer matches {expect.not_answer!r}"
    yield from (f"a step broke: {payload}" for payload in observed["broken"])
    if observed["status"] != "done":
        yield f"the turn ended as {observed['status']}"
