from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from orchestrator.dialogue.questions.base import Level, Question, Wording
from orchestrator.dialogue.questions.deeds import CloseQuestion, Continue, Deed
from orchestrator.saying import Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclear(Question):
    """A question that asks which task the user wants. Its options are the most likely tasks."""

    kind: Literal["unclear"] = "unclear"

    level: ClassVar[Level] = Level.GENERAL
    needs_plain_yes: ClassVar[bool] = True

    def word(self, say: Wording) -> str:
        return say.render("unclear", options=self.labels, doing=say.doing, told=say.explained)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseTask(Question):
    """A question that asks which interrupted task to resume."""

    kind: Literal["task"] = "task"

    def word(self, say: Wording) -> str:
        return say.render("choose_task", options=self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseToStop(Question):
    """A question that asks which task to stop because the stack is full (FS-12). `request`: the user's words."""

    kind: Literal["limit"] = "limit"
    request: str = ""

    @property
    def waiting_request(self) -> str:
        return self.request

    def word(self, say: Wording) -> str:
        return say.render("choose_to_cancel", options=self.labels)

    def stop(self) -> Deed | None:
        return CloseQuestion()  # “never mind” withdraws the new task


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTask(Question):
    """A question that asks whether to start the task that uses the chosen row."""

    kind: Literal["next"] = "next"

    needs_plain_yes: ClassVar[bool] = True

    def word(self, say: Wording) -> str:
        return say.render("choose_next", options=self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOpen(Question):
    """A question that a skill wrote. The skill interprets the answer."""

    kind: Literal["skill"] = "skill"
    text: Told

    takes_any_words: ClassVar[bool] = True

    def word(self, say: Wording) -> str:
        return say.render("open", question=self.text)

    def yes(self) -> Deed:
        return Continue()

    def no(self) -> Deed:
        return Continue()
