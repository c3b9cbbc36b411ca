from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from orchestrator.dialogue.questions.base import Level, Question, Wording
from orchestrator.dialogue.questions.deeds import AskAgain, Clear, Continue, Decline, Deed, Fill, GiveUp


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSlot(Question):
    """A question that asks for a slot's value, or for one of the options if there are any."""

    kind: Literal["slot"] = "slot"

    level: ClassVar[Level] = Level.SPECIFIC

    def word(self, say: Wording) -> str:
        slot = self.slot or "value"
        question = say.find_prompt(slot) or say.render("ask", slot=say.name_slot(slot))
        return say.render("ask_among", question=question, options=self.labels) if self.options else question


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseValue(Question):
    """A question that asks which of several values the user means for a slot."""

    kind: Literal["value"] = "value"

    def word(self, say: Wording) -> str:
        return say.render("choose_value", options=self.labels, slot=say.name_slot(self.slot or "value"))

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

    def word(self, say: Wording) -> str:
        values = {"options": self.labels, "slot": say.name_slot(self.slot or "value")}
        return say.render_own("choose", **values) or say.render("choose", **values)

    def no(self) -> Deed:
        return Decline()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeWhat(Question):
    """A question that asks what to change about a task. `after_no`: True if the user declined its current form."""

    kind: Literal["change"] = "change"
    after_no: bool = False

    ends_when_asked_again: ClassVar[bool] = True

    @property
    def declined(self) -> bool:
        return self.after_no

    def word(self, say: Wording) -> str:
        return say.render("choose_change", options=[])

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

    ends_when_asked_again: ClassVar[bool] = True

    def word(self, say: Wording) -> str:
        return say.render("choose_change", options=self.labels)

    def no(self) -> Deed:
        return Continue()
