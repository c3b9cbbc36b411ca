"""The assistant's questions: their templates, their options, and the action for each answer.

To add a question, define its class in this module and add it to `AnyQuestion`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from orchestrator.dialogue.questions.base import Level as Level
from orchestrator.dialogue.questions.base import Option as Option
from orchestrator.dialogue.questions.base import Question as Question
from orchestrator.dialogue.questions.deeds import (
    Agree,
    AskAgain,
    Clear,
    CloseQuestion,
    Continue,
    Decide,
    Decision,
    Decline,
    Deed,
    Fill,
    GiveUp,
    Propose,
)
from orchestrator.saying import Saying, Told
from orchestrator.types import JsonObject

# Questions about making or repeating a call, or retrying its task (PX-17, RT-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallQuestion(Question):
    """The base class of questions about a call.

    `candidate`: the call's fingerprint. `shown`: the call as displayed. `arguments`: all arguments of the call.
    `found`: the arguments that came from a tool result or a document.
    """

    candidate: str
    shown: JsonObject = field(default_factory=JsonObject)
    arguments: JsonObject = field(default_factory=JsonObject)
    found: tuple[str, ...] = ()

    template: ClassVar[str] = "confirm"
    level: ClassVar[Level] = Level.CONFIRMATION
    needs_plain_yes: ClassVar[bool] = True

    @property
    def fingerprint(self) -> str | None:
        return self.candidate

    @property
    def replies(self) -> tuple[Option, ...]:
        return _offer(self, "yes", "no")

    def yes(self) -> Deed:
        return Agree()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCall(CallQuestion):
    """A question that asks whether to make a call."""

    kind: Literal["candidate"] = "candidate"

    def no(self) -> Deed:
        return Decline()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedCall(CallQuestion):
    """A question that asks whether to make a call that was stopped before it began."""

    kind: Literal["stopped"] = "stopped"

    def no(self) -> Deed:
        return GiveUp()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOutcome(CallQuestion):
    """A question that asks whether to repeat a call that may have succeeded. `what`: a description of the call."""

    kind: Literal["unknown"] = "unknown"
    what: str

    template: ClassVar[str] = "confirm_unknown"
    must_be_seen: ClassVar[bool] = True

    @property
    def replies(self) -> tuple[Option, ...]:
        return _offer(self, "do_again", "leave")

    def no(self) -> Deed:
        return GiveUp(left_unknown=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TryAgain(Question):
    """A question that asks whether to retry a task after a failure or a partial result."""

    kind: Literal["retry"] = "retry"

    template: ClassVar[str] = "retry"
    level: ClassVar[Level] = Level.CONFIRMATION
    needs_plain_yes: ClassVar[bool] = True

    @property
    def replies(self) -> tuple[Option, ...]:
        return _offer(self, "yes", "no")

    def yes(self) -> Deed:
        return Continue()

    def no(self) -> Deed:
        return GiveUp()


def _offer(question: Question, yes: str, no: str) -> tuple[Option, ...]:
    """Return “yes” and “no” replies that identify the call. `yes`, `no`: the message codes of their labels."""
    payload: JsonObject = {"flow_id": question.flow_id}
    if question.fingerprint is not None:
        payload["candidate"] = question.fingerprint
    return Option(Saying(yes), "confirm", payload), Option(Saying(no), "deny", payload)


# Questions about slots and their values


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSlot(Question):
    """A question that asks for a slot's value, or for one of the options if there are any."""

    kind: Literal["slot"] = "slot"

    template: ClassVar[str] = "ask"
    level: ClassVar[Level] = Level.SPECIFIC


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseValue(Question):
    """A question that asks which of several values the user means for a slot."""

    kind: Literal["value"] = "value"

    template: ClassVar[str] = "choose_value"

    def yes(self) -> Deed:
        if len(self.options) != 1 or self.slot is None:
            return AskAgain()
        return Fill(self.slot, self.options[0].payload["value"], confirmed=True)

    def no(self) -> Deed:
        return AskAgain() if self.slot is None else Clear(self.slot)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseRow(Question):
    """A question that asks which of the rows found by a tool the user means."""

    kind: Literal["rows"] = "rows"

    template: ClassVar[str] = "choose"

    def no(self) -> Deed:
        return Decline()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeWhat(Question):
    """A question that asks what to change about a task. `after_no`: True if the user declined its current form."""

    kind: Literal["change"] = "change"
    after_no: bool = False

    template: ClassVar[str] = "choose_change"
    ends_when_asked_again: ClassVar[bool] = True

    @property
    def declined(self) -> bool:
        return self.after_no

    def yes(self) -> Deed:
        return Continue()  # “sorry, yes, book it”: the call is displayed again for confirmation

    def no(self) -> Deed:
        return GiveUp()

    def take_back_no(self) -> Deed | None:
        return Continue()


@dataclass(frozen=True, slots=True, kw_only=True)
class WhichSlot(Question):
    """A question that asks which of several slots a new value belongs to. “Yes” selects none of them."""

    kind: Literal["which_slot"] = "which_slot"

    template: ClassVar[str] = "choose_change"
    ends_when_asked_again: ClassVar[bool] = True

    def no(self) -> Deed:
        return Continue()


# Questions about tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclear(Question):
    """A question that asks which task the user wants. Its options are the most likely tasks."""

    kind: Literal["unclear"] = "unclear"

    template: ClassVar[str] = "unclear"
    level: ClassVar[Level] = Level.GENERAL
    needs_plain_yes: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseTask(Question):
    """A question that asks which interrupted task to resume."""

    kind: Literal["task"] = "task"

    template: ClassVar[str] = "choose_task"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseToStop(Question):
    """A question that asks which task to stop because the stack is full (FS-12). `request`: the user's words."""

    kind: Literal["limit"] = "limit"
    request: str = ""

    template: ClassVar[str] = "choose_to_cancel"

    @property
    def waiting_request(self) -> str:
        return self.request

    def stop(self) -> Deed | None:
        return CloseQuestion()  # “never mind” withdraws the new task


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTask(Question):
    """A question that asks whether to start the task that uses the chosen row."""

    kind: Literal["next"] = "next"

    template: ClassVar[str] = "choose_next"
    needs_plain_yes: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOpen(Question):
    """A question that a skill wrote. The skill interprets the answer."""

    kind: Literal["skill"] = "skill"
    text: Told

    template: ClassVar[str] = "open"
    takes_any_words: ClassVar[bool] = True

    def yes(self) -> Deed:
        return Continue()

    def no(self) -> Deed:
        return Continue()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleDone(Question):
    """A question that asks what to do about committed calls that no longer fit the user's wishes (RT-12).

    Nothing changes before the user decides. `proposed`: the decision that a “yes” selects. `shown`: past calls
    and possible changes, for the template.
    """

    kind: Literal["done"] = "done"
    shown: JsonObject = field(default_factory=JsonObject)
    proposed: Decision | None = None

    template: ClassVar[str] = "confirm_correction"
    stops_everything: ClassVar[bool] = True
    needs_plain_yes: ClassVar[bool] = True

    def yes(self) -> Deed:
        return AskAgain() if self.proposed is None else Decide(self.proposed)

    def no(self) -> Deed:
        return Decide(Decision.KEEP)

    def stop(self) -> Deed | None:
        return Decide(Decision.KEEP)  # “forget it” withdraws the correction

    def choose(self, label: str) -> Deed | None:
        """Return the action of a reply that a model understood, or None for unknown replies.

        All replies except “leave it” need a confirmation.
        """
        option = next((one for one in self.options if one.label == label), None)
        if option is None or option.action_name not in set(Decision):
            return None
        decision = Decision(option.action_name)
        return Decide(decision) if decision is Decision.KEEP else Propose(decision, label)


AnyQuestion: TypeAlias = Annotated[
    PendingCall
    | StoppedCall
    | UnknownOutcome
    | TryAgain
    | AskSlot
    | ChooseValue
    | ChooseRow
    | ChangeWhat
    | WhichSlot
    | Unclear
    | ChooseTask
    | ChooseToStop
    | NextTask
    | LeftOpen
    | SettleDone,
    Field(discriminator="kind"),
]
