"""A session's open questions, with their displayed texts and the number of times each was asked (AM-1 … AM-4).

`dialogue.questions` defines the questions' texts, and the actions for the answers.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from orchestrator.dialogue.questions import AnyQuestion, Level, Option
from orchestrator.dialogue.stack import FlowStack
from orchestrator.types import FlowId

MOST_OPEN = 16
"""Maximum number of unresolved questions. The oldest question is dropped first."""


@dataclass(slots=True)
class Ambiguity:
    """An unresolved question.

    `words`: the displayed text, empty before the question is asked. `asked`: number of times asked, excluding
    repetitions after digressions. `seen_at`: time of first display in Unix seconds, or None if the question
    was not displayed yet or accepts earlier answers.
    """

    about: AnyQuestion
    words: str = ""
    asked: int = 0
    seen_at: float | None = None

    @property
    def level(self) -> Level:
        return self.about.level

    @property
    def flow_id(self) -> FlowId | None:
        return self.about.flow_id

    @property
    def slot(self) -> str | None:
        return self.about.slot

    @property
    def options(self) -> tuple[Option, ...]:
        return self.about.options

    def put(self, words: str) -> None:
        self.words = words

    def note_time(self, at: float) -> None:
        """Record the time of first display, in Unix seconds, if earlier answers are ignored."""
        if self.about.must_be_seen and self.seen_at is None:
            self.seen_at = at

    def was_put_after(self, moment: float) -> bool:
        """Return whether the question was first displayed after `moment`, so that earlier answers are ignored."""
        return (self.seen_at or 0.0) > moment


class QuestionKind(StrEnum):
    """Ways to display a question."""

    OPEN = "open"
    """The user answers in their own words."""
    OPTIONS = "options"
    CONFIRMATION = "confirmation"


@dataclass(frozen=True, slots=True)
class Asked:
    """The current question.

    `escalate`: True to offer fallback options, because the question was asked too many times (AM-4).
    """

    about: AnyQuestion
    kind: QuestionKind
    escalate: bool = False


_NONE: dict[str, int] = {level.value: 0 for level in Level}


@dataclass(slots=True)
class AmbiguityHandler:
    """A session's unresolved questions, latest last. `counts`: number of questions ever opened, by level."""

    stack: FlowStack = field(default_factory=FlowStack)
    open: list[Ambiguity] = field(default_factory=list[Ambiguity])
    counts: dict[str, int] = field(default_factory=_NONE.copy)

    @property
    def current(self) -> Ambiguity | None:
        """Return the latest question that is about the top flow or about no particular flow, or None."""
        flows = self.stack.flows
        concerned = {None, flows[-1].flow_id if flows else None}
        return next((entry for entry in reversed(self.open) if entry.flow_id in concerned), None)

    def declare(self, question: AnyQuestion) -> Ambiguity:
        """Open and count a question.

        The new question replaces any question with the same level, flow and slot, and takes over its `asked`
        count.
        """
        earlier = self.find(level=question.level, flow_id=question.flow_id, slot=question.slot)
        entry = Ambiguity(question, asked=earlier.asked if earlier else 0)
        if earlier is not None:
            self.open.remove(earlier)
        self.open = [*self.open, entry][-MOST_OPEN:]
        self.counts[question.level] += 1
        return entry

    def offer(self, entry: Ambiguity, options: tuple[Option, ...]) -> None:
        entry.about = replace(entry.about, options=options)

    def find(self, *, level: Level, flow_id: FlowId | None, slot: str | None) -> Ambiguity | None:
        wanted = (level, flow_id, slot)
        return next(
            (entry for entry in self.open if (entry.level, entry.flow_id, entry.slot) == wanted), None
        )

    def ask(self, *, limit: int | None = None, again: bool = False) -> Asked | None:
        """Return the current question, or None if no question is current.

        Count the question as asked, unless it is repeated after a digression (`again`). `escalate` is set if
        the question was already asked at least `limit` times. Default: no limit.
        """
        entry = self.current
        if entry is None:
            return None
        escalate = limit is not None and self.escalated(limit)
        if not again:
            entry.asked += 1
        return Asked(entry.about, _kind_of(entry.about), escalate)

    def resolve(
        self,
        entry: Ambiguity | None = None,
        *,
        flow_id: FlowId | None = None,
        level: Level | None = None,
    ) -> list[Ambiguity]:
        """Close `entry`, or all questions that match `flow_id` and `level`. Default: the current question.

        Return the closed questions.
        """
        if entry is None and flow_id is None and level is None:
            entry = self.current
            if entry is None:
                return []
        closed = [
            other
            for other in self.open
            if (other is entry if entry is not None else _matches(other, flow_id, level))
        ]
        self.open = [other for other in self.open if all(other is not gone for gone in closed)]
        return closed

    def escalated(self, limit: int) -> bool:
        """Return whether the current question was asked at least `limit` times (AM-4)."""
        entry = self.current
        return entry is not None and entry.asked >= limit

    def blocks(self, flow_id: str) -> bool:
        """Return whether a flow has an unresolved question, which blocks irreversible side effects (AM-3)."""
        return any(entry.flow_id == flow_id for entry in self.open)


def _matches(entry: Ambiguity, flow_id: str | None, level: Level | None) -> bool:
    return (flow_id is None or entry.flow_id == flow_id) and (level is None or entry.level is level)


def _kind_of(question: AnyQuestion) -> QuestionKind:
    if question.level is Level.CONFIRMATION:
        return QuestionKind.CONFIRMATION
    return QuestionKind.OPTIONS if question.replies else QuestionKind.OPEN
