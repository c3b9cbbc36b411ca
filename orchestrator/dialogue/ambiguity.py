"""The open question: what is unclear, on which of four levels, and how it is asked (AM-1 … AM-4).

One home for every question the session waits on; how it is worded is RES's business.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from orchestrator.dialogue.stack import FlowStack
from orchestrator.types import FlowId, Json, JsonObject, TurnId, is_list, is_object

MOST_OPEN = 16
"""Unresolved questions kept; the oldest goes first."""


class Level(StrEnum):
    GENERAL = "general"
    """The intent is unclear."""
    PARTIAL = "partial"
    """The intent is known, a key entity is not."""
    SPECIFIC = "specific"
    """A slot is missing or invalid."""
    CONFIRMATION = "confirmation"
    """A candidate value or an act needs the user's yes."""


@dataclass(frozen=True, slots=True)
class Option:
    """A suggested reply: a label, and the action that it stands for."""

    label: str
    action_name: str
    payload: JsonObject = field(default_factory=JsonObject)


ASKED_AT = "asked_at"
"""In the metadata of a question that must be seen before it is answered: when it was put; None: it has not been yet."""


@dataclass(slots=True)
class Ambiguity:
    """One unresolved question. `asked`: rounds in which it was asked without success so far.

    `question`: its words, as RES last put them; empty before it is asked.
    """

    level: Level
    flow_id: FlowId | None = None
    slot: str | None = None
    candidates: list[Json] = field(default_factory=list[Json])
    question: str = ""
    asked: int = 0
    turn_id: TurnId | None = None
    options: list[Option] = field(default_factory=list[Option])
    metadata: JsonObject = field(default_factory=JsonObject)
    """Evidence for re-routing (NL-5): what failed and why."""

    def put(self, words: str) -> None:
        """Keep the words in which it is asked."""
        self.question = words

    def note_time(self, at: float) -> None:
        """Keep when it was first put, in unix seconds, where an answer has to come after it."""
        if self.metadata.get(ASKED_AT, at) is None:
            self.metadata[ASKED_AT] = at

    def was_put_after(self, moment: float) -> bool:
        """Say whether nobody can have seen it by then, where that matters."""
        return (self.metadata.get(ASKED_AT) or 0.0) > moment


class QuestionKind(StrEnum):
    OPEN = "open"
    """Answered in the user's own words."""
    OPTIONS = "options"
    """One of several."""
    CONFIRMATION = "confirmation"
    """Yes or no."""


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask. `escalate`: the same question was asked too often, offer another way (AM-4)."""

    level: Level
    kind: QuestionKind
    options: tuple[Option, ...] = ()
    flow_id: FlowId | None = None
    slot: str | None = None
    escalate: bool = False


def show_value(value: Json) -> str:
    """A candidate as a label."""
    if is_object(value):
        named = value.get("name") or value.get("label")
        return str(named) if named else ", ".join(f"{key} {show_value(item)}" for key, item in value.items())
    if is_list(value):
        return ", ".join(show_value(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


_NONE: dict[str, int] = {level.value: 0 for level in Level}


@dataclass(slots=True)
class AmbiguityHandler:
    """The unresolved questions, latest last, and how often each level was declared."""

    stack: FlowStack = field(default_factory=FlowStack)
    open: list[Ambiguity] = field(default_factory=list[Ambiguity])
    counts: dict[str, int] = field(default_factory=_NONE.copy)

    @property
    def current(self) -> Ambiguity | None:
        """The latest question that concerns the top flow, or no flow in particular."""
        flows = self.stack.flows
        concerned = {None, flows[-1].flow_id if flows else None}
        return next((entry for entry in reversed(self.open) if entry.flow_id in concerned), None)

    def declare(
        self,
        level: Level,
        *,
        flow_id: FlowId | None = None,
        slot: str | None = None,
        candidates: Iterable[Json] = (),
        options: Iterable[Option] = (),
        turn_id: TurnId | None = None,
        metadata: JsonObject | None = None,
    ) -> Ambiguity:
        """Note what is unclear and count it; declared again, it keeps the number of rounds asked."""
        earlier = self.find(level=level, flow_id=flow_id, slot=slot)
        entry = Ambiguity(
            level,
            flow_id,
            slot,
            list(candidates),
            "",
            earlier.asked if earlier else 0,
            turn_id,
            list(options),
            dict(metadata or {}),
        )
        if earlier is not None:
            self.open.remove(earlier)
        self.open = [*self.open, entry][-MOST_OPEN:]
        self.counts[level] += 1
        return entry

    def find(self, *, level: Level, flow_id: FlowId | None, slot: str | None) -> Ambiguity | None:
        """The open question with just these properties."""
        wanted = (level, flow_id, slot)
        return next(
            (entry for entry in self.open if (entry.level, entry.flow_id, entry.slot) == wanted), None
        )

    def ask(self, *, limit: int | None = None, again: bool = False) -> Question | None:
        """The current question, dispatched by level; None when nothing is unclear.

        Counts a round, except when it is repeated after a digression (`again`). After `limit`
        rounds without success the question says `escalate`.
        """
        entry = self.current
        if entry is None:
            return None
        escalate = limit is not None and self.escalated(limit)
        if not again:
            entry.asked += 1
        return self._dispatch(entry, escalate=escalate)

    def _dispatch(self, entry: Ambiguity, *, escalate: bool) -> Question:
        kind, options = _FORMS[entry.level](entry)
        return Question(entry.level, kind, tuple(options), entry.flow_id, entry.slot, escalate)

    def resolve(
        self,
        entry: Ambiguity | None = None,
        *,
        flow_id: FlowId | None = None,
        slot: str | None = None,
        level: Level | None = None,
    ) -> list[Ambiguity]:
        """Close questions: the one given, those that match every property named, or the current one."""
        if entry is None and flow_id is None and slot is None and level is None:
            entry = self.current
            if entry is None:
                return []
        closed = [
            other
            for other in self.open
            if (other is entry if entry is not None else _matches(other, flow_id, slot, level))
        ]
        self.open = [other for other in self.open if all(other is not gone for gone in closed)]
        return closed

    def escalated(self, limit: int) -> bool:
        """Whether the current question was asked `limit` times without success (AM-4)."""
        entry = self.current
        return entry is not None and entry.asked >= limit

    def blocks(self, flow_id: str) -> bool:
        """Whether a flow has an unresolved question, so that no lasting effect may happen (AM-3)."""
        return any(entry.flow_id == flow_id for entry in self.open)


def _matches(entry: Ambiguity, flow_id: str | None, slot: str | None, level: Level | None) -> bool:
    return (
        (flow_id is None or entry.flow_id == flow_id)
        and (slot is None or entry.slot == slot)
        and (level is None or entry.level is level)
    )


Form: TypeAlias = tuple[QuestionKind, Sequence[Option]]


def _offer_choices(entry: Ambiguity) -> Form:
    """The declared options, else one per candidate, else an open question."""
    options = entry.options or [
        Option(show_value(value), "fill_slot", {"flow_id": entry.flow_id, "slot": entry.slot, "value": value})
        for value in entry.candidates
    ]
    return QuestionKind.OPTIONS if options else QuestionKind.OPEN, options


def _ask_general(entry: Ambiguity) -> Form:
    return QuestionKind.OPTIONS if entry.options else QuestionKind.OPEN, entry.options


def _ask_yes_or_no(entry: Ambiguity) -> Form:
    payload: JsonObject = {"flow_id": entry.flow_id, "slot": entry.slot}
    if "candidate" in entry.metadata:
        payload["candidate"] = entry.metadata["candidate"]
    named = {**payload, "value": entry.candidates[0]} if entry.candidates else payload
    options = entry.options or [Option("Yes", "confirm", named), Option("No", "deny", payload)]
    return QuestionKind.CONFIRMATION, options


_FORMS: dict[Level, Callable[[Ambiguity], Form]] = {
    Level.GENERAL: _ask_general,
    Level.PARTIAL: _offer_choices,
    Level.SPECIFIC: _offer_choices,
    Level.CONFIRMATION: _ask_yes_or_no,
}
