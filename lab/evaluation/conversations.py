"""Run test conversations through the real Agent, and check the result of each turn.

Each conversation uses separate in-memory stores. `lab.evaluation.scores` measures the outcomes.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lab.evaluation.outside import Reset
from lab.evaluation.rubric import Judge, Verdict, grade_answer
from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.adapters.domains.yaml_source import parse_yaml, read_yaml, write_items
from orchestrator.adapters.models.pool import ModelPool
from orchestrator.domain.compile.problems import Problems, SourceFile
from orchestrator.domain.configuration import merge_sections
from orchestrator.domain.evaluations import ConversationEntry, EvaluationFile, ExpectEntry
from orchestrator.errors import InvalidInput
from orchestrator.nlu.system1 import System1
from orchestrator.res.markup import to_plain
from orchestrator.telemetry import Signal, SignalType
from orchestrator.turns.cases import values_of
from orchestrator.types import Json, JsonObject
from parley.simulator import START, Simulator


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """A turn's message, expectations and result.

    `observed`: actual results by expectation name, plus `source`, the NLU component that decided. `faults`:
    descriptions of differences from the expectations. `verdicts`: the grades of the rubric's criteria.
    """

    said: str
    expect: ExpectEntry
    observed: JsonObject
    faults: list[str]
    verdicts: list[Verdict] = field(default_factory=list[Verdict])


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a conversation. `file`: name of the evaluation file that contains the conversation."""

    file: str
    name: str
    turns: list[TurnOutcome]

    @property
    def is_right(self) -> bool:
        return not any(turn.faults for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The system under evaluation.

    `models`: language models, or None to use only the local classifier. `sections`: configuration that overrides
    the domain's. `judge`: grades the rubric criteria that need a model, or None to leave them ungraded.
    `reset`: resets real services before each conversation, or None.
    """

    loaded: LoadedDomain
    system1: System1
    models: ModelPool | None = None
    sections: JsonObject = field(default_factory=JsonObject)
    judge: Judge | None = None
    reset: Reset | None = None


def read_file(path: Path) -> EvaluationFile:
    """Read a file of conversations. Raises InvalidInput with all problems in the file."""
    problems = Problems()
    return _validate(read_yaml(path, path.name, problems), problems)


def read_conversations(text: str, name: str) -> EvaluationFile:
    """Parse conversations. `name`: file name for messages. Raises InvalidInput with all problems in `text`."""
    problems = Problems()
    return _validate(parse_yaml(text, name, problems), problems)


def _validate(file: SourceFile, problems: Problems) -> EvaluationFile:
    read = problems.read(EvaluationFile, file, file.body)
    if problems.found:
        raise InvalidInput("\n".join(map(str, problems.found)), field="path")
    return read


def add_cases(cases: Sequence[JsonObject], path: Path) -> int:
    """Append cases to a file of conversations, except those whose names it already has. Return the number appended.

    Raises:
        InvalidInput: the file does not end with conversations.
    """
    known = {one.name for one in read_file(path).conversations} if path.exists() else set[str]()
    new = [case for case in cases if case["name"] not in known]
    if new:
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text(encoding="utf-8").rstrip("\n") + "\n" if path.exists() else "conversations:\n"
        text = before + write_items(new)
        try:
            read_conversations(text, path.name)
        except InvalidInput as error:
            raise InvalidInput(
                f"Can't add to {path}: the file must end with its conversations.", field="into"
            ) from error
        path.write_text(text, encoding="utf-8")
    return len(new)


async def evaluate(
    files: Mapping[str, Sequence[ConversationEntry]],
    evaluated: Evaluated,
    notice: Callable[[str], None] = lambda _line: None,
    counted: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Outcome]:
    """Run all files' conversations. `notice`: called with one message per file.

    `counted`: called with the number of finished conversations and the total.
    """
    outcomes: list[Outcome] = []
    total = sum(len(conversations) for conversations in files.values())
    for file, conversations in files.items():
        for conversation in conversations:
            turns = await go_through(conversation, evaluated)
            outcomes.append(Outcome(file, conversation.name, turns))
            counted(len(outcomes), total)
        wrong = sum(not one.is_right for one in outcomes if one.file == file)
        many = "1 conversation" if len(conversations) == 1 else f"{len(conversations)} conversations"
        notice(f"{file}: {many}" + (f", {wrong} failed" if wrong else ""))
    return outcomes


def report_wrong(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        for place, turn in enumerate(outcome.turns, start=1):
            if turn.faults:
                yield f"{outcome.file}: {outcome.name or 'a conversation'}: turn {place}"
                yield f"    said      {turn.said}"
                yield from (f"    wrong     {fault}" for fault in turn.faults)
                yield from (
                    f"    answered  {line}"
                    for line in to_plain(turn.observed["answer"] or "").splitlines()
                    if line
                )


async def go_through(conversation: ConversationEntry, evaluated: Evaluated) -> list[TurnOutcome]:
    """Run all turns of a conversation on new stores, after resetting real services."""
    if evaluated.reset is not None:
        await evaluated.reset()
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
    """Run all turns of a conversation, even if some of them fail."""
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
        verdicts = await grade_answer(entry.expect.rubric, judge, said, answer, before)
        faults += [f"fails the rubric: {one.criterion}" for one in verdicts if one.met is False]
        before += [f"user: {said}", f"assistant: {answer}"]
        outcomes.append(TurnOutcome(said, entry.expect, observed, faults, verdicts))
        remembered |= values_of(turn)
    return outcomes


def payload_of(action: JsonObject, offered: Sequence[JsonObject]) -> JsonObject:
    """Return the payload of an offered action that has the same name and all members of the action's payload.

    Return the action's own payload if no offered action matches.
    """
    written: JsonObject = action.get("payload") or {}
    fitting = (one["payload"] for one in offered if one["name"] == action["name"])
    return next((one for one in fitting if written.items() <= one.items()), written)


def insert(text: str, remembered: Mapping[str, str]) -> str:
    """Replace placeholders such as ``<booking_ref>`` with values from earlier answers, and leave unknown ones."""
    return re.sub(r"<(\w+)>", lambda name: remembered.get(name[1], name[0]), text)


def observe(turn: JsonObject, signals: Sequence[Signal]) -> JsonObject:
    """Return the turn results that expectations can refer to."""
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
    yield from (f"a step failed: {payload}" for payload in observed["broken"])
    if observed["status"] != "done":
        yield f"the turn ended as {observed['status']}"
