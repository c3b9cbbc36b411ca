"""The base class of questions to the user: suggested replies, template, and the action for each answer.

The Agent runs the actions. RES renders the template.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from orchestrator.dialogue.questions.deeds import AskAgain, CloseQuestion, Deed, Fill, Start
from orchestrator.saying import Told
from orchestrator.types import Dact, FlowId, JsonObject


class Level(StrEnum):
    GENERAL = "general"
    """The intent is unclear."""
    PARTIAL = "partial"
    """The intent is known, but a key entity is missing."""
    SPECIFIC = "specific"
    """A slot is missing or invalid."""
    CONFIRMATION = "confirmation"
    """A call or a retry needs the user's confirmation."""


@dataclass(frozen=True, slots=True)
class Option:
    """A suggested reply: a label, and the name and payload of its action."""

    label: Told
    action_name: str
    payload: JsonObject = field(default_factory=JsonObject)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(ABC):
    """A question to the user. Each subclass has a `kind`, which identifies the subclass in stored states.

    `flow_id`: the flow that asks, or None. `slot`: the slot in question, or None. `options`: suggested
    replies.
    """

    flow_id: FlowId | None = None
    slot: str | None = None
    options: tuple[Option, ...] = ()

    template: ClassVar[str]
    """The template of the question's text. See `res.steps.clarify` for its variables."""
    level: ClassVar[Level] = Level.PARTIAL
    must_be_seen: ClassVar[bool] = False
    """True if answers sent before the question was displayed are ignored."""
    takes_any_words: ClassVar[bool] = False
    """True if every message is an answer, which the flow interprets."""
    stops_everything: ClassVar[bool] = False
    """True if all flows wait for the answer."""
    ends_when_asked_again: ClassVar[bool] = False
    """True if a second request for the same task withdraws the question."""
    needs_plain_yes: ClassVar[bool] = False
    """True if only a plain “yes” confirms (PX-18)."""

    @property
    def labels(self) -> list[Told]:
        return [option.label for option in self.options]

    @property
    def replies(self) -> tuple[Option, ...]:
        """Return the suggested replies. Default: `options`."""
        return self.options

    @property
    def declined(self) -> bool:
        """Return whether the user has declined the flow in its current form."""
        return False

    @property
    def waiting_request(self) -> str:
        """Return the user's request that waits for the answer, as text, or an empty string."""
        return ""

    @property
    def fingerprint(self) -> str | None:
        """Return the fingerprint of the call that a “yes” confirms, or None if the question is not about a call."""
        return None

    def yes(self) -> Deed:
        """Return the action for “yes”: the only option's action; otherwise, repeat the question."""
        match self.options:
            case [Option(action_name="start_flow", payload={"dact": str(dact)})]:
                return Start(Dact(dact))
            case [Option(action_name="fill_slot", payload={"slot": str(slot), "value": value})]:
                return Fill(slot, value)
            case _:
                return AskAgain()

    def no(self) -> Deed:
        """Return the action for “no”: close a question without a flow; otherwise, repeat the question."""
        return CloseQuestion(told=True) if self.flow_id is None else AskAgain()

    def stop(self) -> Deed | None:
        """Return the action for “never mind”, or None to cancel the task."""
        return None

    def take_back_no(self) -> Deed | None:
        """Return the action for “sorry, yes” after a “no”, or None."""
        return None

    def choose(self, label: str) -> Deed | None:
        """Return the action for the reply with this label, or None if the question doesn't define one."""
        del label
        return None
