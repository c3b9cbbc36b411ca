"""A prompt engineer with the real client and a scripted model."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from orchestrator.adapters.models.chat import LibraryChat
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.models.breaker import BreakerBoard, BreakerPolicy
from orchestrator.models.calling import CallContext, Pacing
from orchestrator.models.config import ModelChoice, ModelConfig, Timeouts
from orchestrator.models.engineer import PromptEngineer, ToolsAnswer
from orchestrator.models.retries import RetryPolicy
from orchestrator.models.signals import circuit_signal
from orchestrator.models.templates import load_prompts
from orchestrator.ports.language_model import ToolDefinition
from orchestrator.telemetry import Signal, SignalType
from orchestrator.types import SessionId, TurnId
from parley.testing.scripted_model import Reply, Rule, Script, ScriptedModel

SCHEMA = {
    "type": "object",
    "required": ["flows"],
    "properties": {"flows": {"type": "array", "items": {"type": "object", "required": ["dact"]}}},
}
GOOD = {"flows": [{"dact": "book_flight", "score": 0.9}]}
TEXT = {"persona": "Plain", "language": "English", "max_sentences": 3, "draft": "Booked.", "history": []}
PROMPTS = load_prompts()
SEARCH = ToolDefinition(
    "flight_search",
    "Find flights.",
    {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]},
)
CONFIG = ModelConfig(
    default=ModelChoice("small"),
    timeouts=Timeouts(5, 5),
    max_tokens_per_prompt={"nlu_think": 64, "res_naturalize": 64},
    retries=RetryPolicy(attempts=3, base_s=0.01, cap_s=0.02, longest_wait_s=1),
)
BREAKER = BreakerPolicy(threshold=4, cooling_s=30)


class Waits:
    """Waits that are recorded and skipped."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def thinking(utterance: str = "Book a flight to Oslo") -> dict:
    settings = {"assistant": "Travel", "today": "Monday, 2026-01-05", "flows": [], "likely": {}}
    return settings | {
        "utterance": utterance,
        "history": [],
        "stack": [],
        "question": None,
        "shown": [],
        "plan": [],
        "remembered": [],
    }


def wording(utterance: str = "Thanks") -> dict:
    return TEXT | {"utterance": utterance}


def calling(**more) -> CallContext:
    return CallContext(session_id=SessionId("session_a"), turn_id=TurnId("turn_b"), **more)


def script(*replies: Reply) -> Script:
    return Script(rules=(Rule(replies=replies),))


def quiet_board() -> BreakerBoard:
    return BreakerBoard(BREAKER, Pacing().clock, lambda _view: None)


class Bench:
    """A scripted model, and an engineer that calls it."""

    def __init__(self, model: ScriptedModel, engineer: PromptEngineer, signals: list[Signal]) -> None:
        self.model = model
        self.engineer = engineer
        self.signals = signals

    async def think(self, call: CallContext | None = None, **more) -> dict:
        return await self.engineer.structured("nlu_think", thinking(), SCHEMA, call or calling(), **more)

    async def word(self, call: CallContext | None = None) -> str:
        return await self.engineer.text("res_naturalize", wording(), call or calling())

    async def listen(self, pieces: list[str]) -> None:
        async for piece in self.engineer.stream("res_naturalize", wording(), calling()):
            pieces.append(piece)  # noqa: PERF401 - what came before a failure counts

    async def hear(self) -> str:
        """Return the text of a stream."""
        pieces: list[str] = []
        await self.listen(pieces)
        return "".join(pieces)

    async def use_tools(self, *tools: ToolDefinition, **more: Any) -> ToolsAnswer:
        """Ask for the next calls of these tools. Default: the search for flights."""
        return await self.engineer.tools("res_naturalize", wording(), tools or (SEARCH,), calling(), **more)

    def calls(self) -> list[dict]:
        return self._payloads(SignalType.MODEL_CALL)

    def circuits(self) -> list[dict]:
        return self._payloads(SignalType.BREAKER)

    def _payloads(self, kind: SignalType) -> list[dict]:
        return [dict(signal.payload) for signal in self.signals if signal.type is kind]


@asynccontextmanager
async def bench(
    playing: Script,
    config: ModelConfig = CONFIG,
    *,
    pacing: Pacing | None = None,
    breaker: BreakerPolicy = BREAKER,
    keep_prompts: bool = False,
    **more,
) -> AsyncGenerator[Bench, None]:
    signals: list[Signal] = []
    pacing = pacing or Pacing()
    with ScriptedModel(playing) as model:
        chat = LibraryChat(Endpoint(base_url=model.base_url, **more))
        board = BreakerBoard(breaker, pacing.clock, lambda view: signals.append(circuit_signal(view)))
        engineer = PromptEngineer(
            {"default": chat},
            PROMPTS,
            config,
            board,
            record=signals.append,
            pacing=pacing,
            keep_prompts=keep_prompts,
        )
        try:
            yield Bench(model, engineer, signals)
        finally:
            await chat.aclose()
