"""The interface of simulated users, and a user that fills the flows' examples with the domain's vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Protocol

from lab.simulation.goals import PLACEHOLDER, Goal, Twist, find_correctable
from orchestrator.domain.model import Domain
from orchestrator.turns.cases import values_of
from orchestrator.types import JsonObject

_MOST_RESTATED = 2
_MOST_FAILED = 2
"""Number of turns with failed calls after which the user gives up."""
_PLAIN = 5
"""Maximum number of the language's confirmations that the user chooses from."""


class Purpose(StrEnum):
    ASK = "ask"
    ANSWER = "answer"
    CORRECT = "correct"
    AGREE = "agree"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Move:
    text: str
    purpose: Purpose


class User(Protocol):
    """A simulated user that talks to the assistant until a goal is reached or abandoned.

    `gave_up`: why the user abandoned the goal, or an empty string. `is_speechless`: True if the user could
    not reply for a reason unrelated to the assistant, such as a model failure.
    """

    gave_up: str
    is_speechless: bool

    async def begin(self, goal: Goal) -> Move | None: ...

    async def answer(self, turn: JsonObject) -> Move | None:
        """Return the user's next move, or None if the user reached or abandoned the goal."""
        ...


class GrammarUser:
    """A user that states a goal with an example of the flow, answers questions, and confirms matching offers."""

    def __init__(self, domain: Domain, chance: Random) -> None:
        self._domain, self._chance = domain, chance
        language = domain.config.language.default
        words = [*domain.lexicons.get(language, ()), *domain.lexicons.get("en", ())][0]
        self._yes, self._no = words.agree[:_PLAIN], words.refuse[0]
        self._is_english = language == "en"
        self._heard: dict[str, str] = {}
        self.gave_up, self.is_speechless = "", False

    async def begin(self, goal: Goal) -> Move:
        self._goal, self.gave_up, self.is_speechless = goal, "", False
        self._restated, self._failed, self._refused, self._last_question = 0, 0, False, ""
        return self._open(goal.opening)

    async def answer(self, turn: JsonObject) -> Move | None:
        self._heard |= values_of(turn)
        goal, asked = self._goal, turn["ambiguity"] or {}
        self._failed += any(tool["status"] != "ok" for tool in turn["tools"])
        is_over = self._refused or self._failed >= _MOST_FAILED or goal.flow.dact in turn["completed"]
        if is_over or not asked:
            return None
        if asked["level"] == "confirmation":
            return self._decide(turn)
        if asked["slot"] is not None:
            return self._fill(asked["slot"], turn["reply"])
        self._restated += 1
        if self._restated > _MOST_RESTATED:
            return self._give_up("isn't understood")
        return self._open(max(goal.flow.examples, key=self._count_values))

    def _count_values(self, template: str) -> int:
        return sum(name in self._goal.values for name in PLACEHOLDER.findall(template))

    def _open(self, template: str) -> Move:
        """Return an example of the flow, filled with the goal's values. Other placeholders become plain words."""
        goal = self._goal
        named = [name for name in PLACEHOLDER.findall(template) if name in goal.values]
        goal.stated |= {*named}
        texts = {name: one.text for name, one in goal.values.items()}
        text = PLACEHOLDER.sub(lambda name: texts.get(name[1], name[1].replace("_", " ")), template)
        return Move(text, Purpose.ASK)

    def _decide(self, turn: JsonObject) -> Move | None:
        """Answer an offer: correct a value, refuse, or agree if the offer belongs to the goal."""
        goal = self._goal
        if goal.twist is Twist.CORRECT and (move := self._correct(turn)) is not None:
            return move
        held = next((flow for flow in reversed(turn["flows"]) if flow["state"] == "Active"), None)
        steps = {goal.flow.dact, *(step.dact for step in goal.flow.recipe)}
        if goal.twist is Twist.REFUSE or held is None or held["dact"] not in steps:
            self._refused = True
            return Move(self._no, Purpose.REFUSE)
        return Move(self._chance.choice(self._yes), Purpose.AGREE)

    def _correct(self, turn: JsonObject) -> Move | None:
        """Correct one of the stated values once, or return None if no value can be corrected."""
        goal = self._goal
        goal.twist = Twist.NONE
        held = turn["flows"][-1]["slots"] if turn["flows"] else {}
        slots = [name for name in find_correctable(goal) if name in goal.stated and name in held]
        if not slots:
            return None
        name = self._chance.choice(slots)
        goal.values[name] = goal.others[name]
        return Move(self._word_correction(name), Purpose.CORRECT)

    def _word_correction(self, name: str) -> str:
        slots, text = self._goal.flow.slots, self._goal.values[name].text
        alike = [
            one
            for one in slots.values()
            if (one.entity or one.type) == (slots[name].entity or slots[name].type)
        ]
        forms = [f"{self._no}, {text}"] if len(alike) == 1 else []
        if self._is_english:
            forms.append(f"change the {name.replace('_', ' ')} to {text}")
        return self._chance.choice(forms or [f"{self._no}, {text}"])

    def _fill(self, slot: str, question: str) -> Move | None:
        """Answer a question about a slot. Give up and return None if the question repeats or no value is known."""
        goal = self._goal
        if question == self._last_question:
            return self._give_up(f"was asked for {slot} again")
        self._last_question = question
        if slot in goal.values:
            is_again = slot in goal.stated
            if is_again and slot in goal.others:
                goal.values[slot] = goal.others[slot]  # the first value is unavailable
            goal.stated.add(slot)
            return Move(goal.values[slot].text, Purpose.ANSWER)
        if slot in self._heard:
            return Move(self._heard[slot], Purpose.ANSWER)
        self.is_speechless = True
        return self._give_up(f"{slot} has no sample value")

    def _give_up(self, why: str) -> None:
        self.gave_up = why
