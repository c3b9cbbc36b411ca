"""Questions about making or repeating a call, or retrying its task (PX-17, RT-9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from orchestrator.dialogue.questions.base import Level, Option, Question, Wording
from orchestrator.dialogue.questions.deeds import Agree, Continue, Decline, Deed, GiveUp
from orchestrator.saying import Saying
from orchestrator.types import JsonObject


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

    level: ClassVar[Level] = Level.CONFIRMATION
    needs_plain_yes: ClassVar[bool] = True

    @property
    def fingerprint(self) -> str | None:
        return self.candidate

    @property
    def replies(self) -> tuple[Option, ...]:
        return _offer(self, "yes", "no")

    def word(self, say: Wording) -> str:
        return say.word_call(self.shown, self.arguments, self.found)

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

    must_be_seen: ClassVar[bool] = True

    @property
    def replies(self) -> tuple[Option, ...]:
        return _offer(self, "do_again", "leave")

    def word(self, say: Wording) -> str:
        return say.render(
            "confirm_unknown",
            what=self.what,
            facts=say.list_facts(self.shown),
            arguments=say.list_arguments(self.arguments, self.found),
            done=say.list_done(),
        )

    def no(self) -> Deed:
        return GiveUp(left_unknown=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TryAgain(Question):
    """A question that asks whether to retry a task after a failure or a partial result."""

    kind: Literal["retry"] = "retry"

    level: ClassVar[Level] = Level.CONFIRMATION
    needs_plain_yes: ClassVar[bool] = True

    @property
    def replies(self) -> tuple[Option, ...]:
        return _offer(self, "yes", "no")

    def word(self, say: Wording) -> str:
        return say.render("retry")

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
