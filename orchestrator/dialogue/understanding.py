"""NLU's interpretation of a message: its kind, the most likely flows, and its values (NL-4).

The Agent decides how the interpretation changes the stack (IR-1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.saying import Told
from orchestrator.types import Dact, Json


class MessageKind(StrEnum):
    TASK = "task"
    SLOT_VALUE = "slot_value"
    CORRECTION = "correction"
    CONFIRMATION = "confirmation"
    DENIAL = "denial"
    CANCELLATION = "cancellation"
    RESUMPTION = "resumption"
    DIGRESSION = "digression"
    CHITCHAT = "chitchat"
    PLAN_CHANGE = "plan_change"
    """Reordering, skipping or adding steps in a running plan."""
    UNKNOWN = "unknown"
    """No kind is likely enough (general ambiguity)."""


class Digression(StrEnum):
    QUESTION = "question"
    """A question about the domain: "which cities do you fly to?"."""
    CLARIFICATION = "clarification"
    """A question about the assistant's question: "why do you need my date?"."""
    HELP = "help"
    STATUS = "status"
    """A question about the task: "what do you still need?"."""
    PERSON = "person"
    PAGE = "page"
    """Another page of the displayed table. `Understanding.target`: next, previous, first, last, or the page number."""


class Source(StrEnum):
    COMMAND = "command"
    """A command pattern, or a plain “yes” or “no”."""
    SYSTEM1 = "system1"
    SYSTEM2 = "system2"
    ACTION = "action"
    DOCUMENTS = "documents"
    """A document that answers the question."""


class PlanAction(StrEnum):
    SKIP = "skip"
    FIRST = "first"
    BEFORE = "before"
    ADD = "add"
    """Add a step that uses results of `step` or, if `step` is None, a request to run after the plan."""


class Cue(StrEnum):
    """A wording that changes the effect of a message, in addition to its kind and values."""

    ADDS = "adds"
    """The user wants an additional item: "as well"."""
    ALL_TASKS = "all_tasks"
    """The user means all tasks: "cancel everything"."""
    CORRECTS = "corrects"
    """The message corrects an earlier message: "actually", "instead"."""
    REQUESTS = "requests"
    """The user wants something: "can I get a receipt?"."""
    PROGRESS = "progress"
    """The question is about the conversation: "how far are we?"."""
    OTHER_ROW = "other_row"
    """The user wants rows other than the current row: "anything else?"."""
    AS_BEFORE = "as_before"
    """The user means an earlier value: "a hotel there", "on the same day"."""


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """A message's references to displayed rows or to an offer.

    `fields`: requested fields of the current row, or of every row if `each` is set. `named`: the index of the
    only row that the message names, or None.
    """

    fields: tuple[str, ...] = ()
    each: bool = False
    named: int | None = None


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A requested change to a plan.

    `step`: the step to change or, for ADD, whose results a new step uses; None if the message doesn't name a
    single step. `other`: for BEFORE, the step that `step` moves ahead of. `others`: further steps to skip.
    """

    action: PlanAction
    step: str | None
    other: str | None = None
    others: tuple[str, ...] = ()


class Rejection(StrEnum):
    """A reason for rejecting a message before it is interpreted (NL-1)."""

    EMPTY = "empty"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    REPEATED = "repeated"
    RESERVED_TOKENS = "reserved_tokens"
    UNSUPPORTED_LANGUAGE = "unsupported_language"


@dataclass(frozen=True, slots=True)
class FlowScore:
    """A flow with its score from 0 to 1."""

    dact: Dact
    score: float


@dataclass(slots=True)
class Prediction:
    """NLU's result for the last message. `candidates`: the three best flows, best first."""

    intent: str | None = None
    flow: Dact | None = None
    candidates: list[FlowScore] = field(default_factory=list[FlowScore])


@dataclass(frozen=True, slots=True)
class Mention:
    """A value found in the message for one slot.

    `candidates`: several values, if the text is ambiguous ("San Jose" in two countries); then `value` is
    None. `invalid`: the reason why the text is not a valid value.
    """

    value: Json = None
    text: str = ""
    candidates: tuple[Json, ...] = ()
    invalid: Told | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the user wants a value but did not state it, so that the assistant must ask."""
        return self.value is None and not self.candidates and not self.invalid


@dataclass(frozen=True, slots=True)
class Understanding:
    """An interpretation of a message.

    `flows`: up to three, best first. `slots`: values by slot name, for the predicted flow or, if no task is
    requested, the active flow. `target`: the user's words for the subject of a resumption, cancellation or
    correction. `not_understood`: relevant words in the message that the interpretation leaves out.
    """

    kind: MessageKind
    source: Source
    text: str = ""
    intent: str | None = None
    flows: tuple[FlowScore, ...] = ()
    slots: Mapping[str, Mention] = field(default_factory=dict[str, Mention])
    target: str | None = None
    digression: Digression | None = None
    not_understood: tuple[str, ...] = ()
    rejection: Rejection | None = None
    plan_change: PlanChange | None = None
    plain: bool = False
    """True if the whole message is a plain “yes”. No other typed text confirms a side effect (PX-18)."""
    by_model_alone: bool = False
    """True if the local classifier disagrees with the model. Side effects then need a confirmation."""
    refers: bool = False
    """True if a model took a value that the message doesn't name from an earlier task or a displayed row."""
    copied: bool = False
    """True if values come from a completed task. These values are displayed before a call with a side effect."""
    declines: bool = False
    """True if the message declines the offered call, as in “don't cancel, change it to Sunday instead”."""
    either: tuple[str, ...] = ()
    """The slots that a correction's value may apply to, if the message doesn't name a slot."""
    assumed: tuple[Told, ...] = ()
    """Assumptions to report to the user, such as “I took “orgin” for origin.”"""

    cues: frozenset[Cue] = frozenset()
    rows: RowQuestion = RowQuestion()

    later: str = ""
    """A second request in the message, in the user's words.

    The second request is interpreted after the first request has ended.
    """

    @classmethod
    def of_task(
        cls, spec: FlowSpec, source: Source, text: str, slots: Mapping[str, Mention]
    ) -> Understanding:
        """Return the interpretation of a message that certainly requests a flow."""
        return cls(MessageKind.TASK, source, text, spec.intent, (FlowScore(spec.dact, 1.0),), slots)

    @property
    def is_click(self) -> bool:
        """Return whether the user clicked. Requests postponed from an earlier message are treated as text."""
        return self.source is Source.ACTION

    def agrees_with(self, other: Understanding) -> bool:
        """Return whether another component found the same kind, flow and values."""
        return self._gist() == other._gist()

    def with_undecided(self, other: Understanding) -> Understanding:
        """Return a copy that combines two interpretations of the same kind and flow.

        Slots that only `other` leaves open become open. Values from `other` fill slots that are open here.
        If the kinds or flows differ, this interpretation is returned; a second task in `other` is
        postponed.
        """
        if self._gist()[:2] != other._gist()[:2]:
            both = self.kind is other.kind is MessageKind.TASK and other.later
            return replace(self, later=other.text) if both else self  # `other` is the second request
        undecided = {
            name: mention
            for name, mention in other.slots.items()
            if mention.value is None and self._leaves_open(name, mention, other)
        }
        decided = {
            name: other.slots[name]
            for name, mention in self.slots.items()
            if name in other.slots and mention.value is None and not mention.candidates
        }
        added = replace(self, slots={**self.slots, **undecided, **decided}, later=self.later or other.later)
        return (
            replace(added, assumed=other.assumed, either=other.either) if added.agrees_with(other) else added
        )

    def _leaves_open(self, name: str, mention: Mention, other: Understanding) -> bool:
        """Return whether a slot that `other` leaves open is open here too: "just one" may mean seats or a row."""
        if mention.text == other.text and not self.slots.keys() <= other.slots.keys():
            return False
        own = self.slots.get(name)
        return own is None or (own.value in (None, mention.text) and own.value not in mention.candidates)

    def _gist(self) -> tuple[MessageKind, Dact | None, dict[str, Json]]:
        """Return the kind, the flow of a task, and the values. Corrections are treated as slot values."""
        kind = MessageKind.SLOT_VALUE if self.kind is MessageKind.CORRECTION else self.kind
        dact = self.flows[0].dact if kind is MessageKind.TASK and self.flows else None
        return kind, dact, {name: mention.value for name, mention in self.slots.items()}
