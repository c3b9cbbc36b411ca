"""The question about committed calls that no longer fit the user's wishes (RT-12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from orchestrator.dialogue.questions.base import Question, Wording
from orchestrator.dialogue.questions.deeds import AskAgain, Decide, Decision, Deed, Propose
from orchestrator.types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleDone(Question):
    """A question that asks what to do about committed calls. Nothing changes before the user decides.

    `proposed`: the decision that a “yes” selects. `shown`: past calls and possible changes, for the template.
    """

    kind: Literal["done"] = "done"
    shown: JsonObject = field(default_factory=JsonObject)
    proposed: Decision | None = None

    stops_everything: ClassVar[bool] = True
    needs_plain_yes: ClassVar[bool] = True

    def word(self, say: Wording) -> str:
        return say.render("confirm_correction", options=self.labels, **self.shown)

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
