"""Common parts of questions to the user: offered replies, wording, and the action of each answer.

The Agent runs the actions and RES words the questions; a question names a template and its values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import ClassVar, Protocol

from orchestrator.dialogue.questions.deeds import AskAgain, CloseQuestion, Deed, Fill, Start
from orchestrator.saying import Told
from orchestrator.types import Dact, FlowId, Json, JsonObject


class Level(StrEnum):
    GENERAL = "general"
    """The intent is unclear."""
    PARTIAL = "partial"
    """The intent is known, a key entity is not."""
    SPECIFIC = "specific"
    """A slot is missing or invalid."""
    CONFIRMATION = "confirmation"
    """A call or a second attempt needs the user's yes."""


@dataclass(frozen=True, slots=True)
class Option:
    """A suggested reply: a label, and the action that it stands for."""

    label: Told
    action_name: str
    payload: JsonObject = field(default_factory=JsonObject)


class Wording(Protocol):
    """RES, as a question sees it: templates, and the names and values of the flow that asks."""

    @property
    def doing(self) -> str:
        """Return the flow's task, as in “booking a flight”, or an empty string without a flow."""
        ...

    @property
    def explained(self) -> bool:
        """Return whether the answer already says why the message was not taken."""
        ...

    def render(self, template: str, /, **values: Json) -> str:
        """Fill a template."""
        ...

    def render_own(self, suffix: str, /, **values: Json) -> str | None:
        """Fill the domain's template ``<dact>.<suffix>``. Returns None if it is missing or fails."""
        ...

    def name_slot(self, slot: str) -> str:
        """Return the slot's name for users."""
        ...

    def find_prompt(self, slot: str) -> str | None:
        """Return the domain's own question for a slot."""
        ...

    def list_facts(self, shown: JsonObject) -> list[JsonObject]:
        """Return name and value of each filled slot, and of tool results for it."""
        ...

    def list_arguments(self, arguments: JsonObject, found: tuple[str, ...]) -> list[JsonObject]:
        """Return name and value of every argument of a call, and whether it was `found` by a tool."""
        ...

    def list_done(self) -> list[Told]:
        """Return the flow's committed effects, unless the reply reports them already."""
        ...

    def word_call(self, shown: JsonObject, arguments: JsonObject, found: tuple[str, ...]) -> str:
        """Describe a pending call with all its arguments and ask for confirmation."""
        ...


@dataclass(frozen=True, slots=True)
class Question(ABC):
    """One question to the user. `flow_id`: the flow that asks, or None if none does. `options`: suggested replies.

    Subclasses are stored by their `kind`.
    """

    _: KW_ONLY
    flow_id: FlowId | None = None
    slot: str | None = None
    options: tuple[Option, ...] = ()

    level: ClassVar[Level] = Level.PARTIAL
    must_be_seen: ClassVar[bool] = False
    """An answer sent before the question was displayed does not count."""
    takes_any_words: ClassVar[bool] = False
    """Every message answers the question: the flow reads the words itself."""
    stops_everything: ClassVar[bool] = False
    """No flow continues before the question is answered."""
    ends_when_asked_again: ClassVar[bool] = False
    """A second request for the same task withdraws the question."""
    needs_plain_yes: ClassVar[bool] = False
    """Only a plain “yes” counts (PX-18)."""

    @property
    def labels(self) -> list[Told]:
        return [option.label for option in self.options]

    @property
    def replies(self) -> tuple[Option, ...]:
        """Return the suggested replies."""
        return self.options

    @property
    def declined(self) -> bool:
        """Return whether the user has declined the flow as it is."""
        return False

    @property
    def waiting_request(self) -> str:
        """Return the user's request that waits for the answer, in words, or an empty string."""
        return ""

    @property
    def fingerprint(self) -> str | None:
        """Return the pending call that a “yes” confirms, or None if the question is not about a call."""
        return None

    @abstractmethod
    def word(self, say: Wording) -> str:
        """Return the question's text."""

    def yes(self) -> Deed:
        """Return the action of the only reply; with several replies, “yes” selects none."""
        match self.options:
            case [Option(action_name="start_flow", payload={"dact": str(dact)})]:
                return Start(Dact(dact))
            case [Option(action_name="fill_slot", payload={"slot": str(slot), "value": value})]:
                return Fill(slot, value)
            case _:
                return AskAgain()

    def no(self) -> Deed:
        """Close a question of no flow; a flow's own is asked again."""
        return CloseQuestion(told=True) if self.flow_id is None else AskAgain()

    def stop(self) -> Deed | None:
        """Return the action of “never mind” if it doesn't cancel the task, or None."""
        return None

    def take_back_no(self) -> Deed | None:
        """Return the action of “sorry, yes” after a “no”, or None."""
        return None

    def choose(self, label: str) -> Deed | None:
        """Return the action of a reply selected by its words, if the question defines one, or None."""
        del label
        return None
