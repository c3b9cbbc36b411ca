from __future__ import annotations

from typing import cast

from lab.simulation.goals import Goal, Twist, find_correctable
from lab.simulation.user import Move, Purpose
from orchestrator.domain.configuration import DomainConfig
from orchestrator.models.calling import CallContext
from orchestrator.models.engineer import PromptEngineer
from orchestrator.ports.language_model import MODEL_FAILURES
from orchestrator.res.markup import to_plain
from orchestrator.types import Json, JsonObject, SessionId, TurnId

PROMPT = "eval_user"
_MOST_BEFORE = 20
"""Maximum number of conversation lines shown to the model."""
_SHAPE: JsonObject = {
    "type": "object",
    "required": ["say", "means", "done"],
    "properties": {
        "say": {"type": "string", "maxLength": 400},
        "means": {"enum": [purpose.value for purpose in Purpose]},
        "done": {"type": "boolean"},
    },
}


class ModelUser:
    """A simulated user played by a language model. It pursues the same goals as `GrammarUser`."""

    def __init__(self, engineer: PromptEngineer, config: DomainConfig) -> None:
        self._engineer = engineer
        self._assistant = config.description or config.persona.name
        self._lines: list[str] = []
        self.gave_up = ""
        self.is_speechless = False

    async def begin(self, goal: Goal) -> Move | None:
        self._goal, self.gave_up = goal, ""
        self._behavior = self._describe_twist()
        goal.stated |= {*goal.wanted}
        return await self._ask()

    async def answer(self, turn: JsonObject) -> Move | None:
        self._lines.append(f"assistant: {to_plain(turn['reply'] or '')}")
        return None if self._goal.flow.dact in turn["completed"] else await self._ask()

    def _describe_twist(self) -> str:
        goal, self._other = self._goal, ""
        if goal.twist is Twist.REFUSE:
            return "When the assistant offers to do it, refuse with a plain “no”."
        slots = find_correctable(goal) if goal.twist is Twist.CORRECT else []
        if not slots:
            return ""
        self._other = slots[0]
        return f"Change your mind once, before you agree: {slots[0]} should be {goal.others[slots[0]].text}."

    async def _ask(self) -> Move | None:
        goal = self._goal
        names = sorted(goal.stated)
        variables: dict[str, Json] = {
            "assistant": self._assistant,
            "task": goal.flow.description,
            "values": [{"name": name, "text": goal.values[name].text} for name in names],
            "behavior": self._behavior,
            "conversation": [*self._lines[-_MOST_BEFORE:]],
        }
        call = CallContext(session_id=SessionId("session_simulated"), turn_id=TurnId("turn_simulated"))
        try:
            given = await self._engineer.structured(PROMPT, variables, _SHAPE, call)
        except MODEL_FAILURES as error:
            self.is_speechless, self.gave_up = True, f"the model did not answer: {error}"
            return None
        if given["done"] or not given["say"].strip():
            return None
        move = Move(cast("str", given["say"]), Purpose(given["means"]))
        if move.purpose is Purpose.CORRECT and self._other:
            goal.values[self._other] = goal.others[self._other]
        self._lines.append(f"user: {move.text}")
        return move
