"""A flow with tools that is ready to run, for tests of PEX."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.context import Recall, TurnChanges, TurnContext, TurnIds, TurnLog, World
from orchestrator.dialogue.flow import BaseFlow, make_flow_class
from orchestrator.dialogue.specification import Family, FlowSpec, Priority, SlotSpec, ToolUse
from orchestrator.dialogue.state import DialogueState
from orchestrator.domain.configuration import DomainConfig
from orchestrator.domain.model import Domain, Implementation, ToolSpec
from orchestrator.domain.registry import Registry
from orchestrator.memory.notes import SessionNotes
from orchestrator.models.calling import CallContext
from orchestrator.pex.execution import Execution
from orchestrator.pex.policy import BasePolicy
from orchestrator.telemetry import Signal
from orchestrator.tools.runner import ToolRunner
from orchestrator.tools.toolbox import Toolbox
from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.effect import Effect
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import DEFAULT_TENANT, Dact, SessionId, ToolId, TurnId
from tests.configuration import default_config

CONFIG = default_config({"resilience": {"backoff_base_s": 0, "backoff_max_s": 0}})
NOW = 1_795_176_000.0

LOOK = ToolSpec(
    tool_id=ToolId("thing_look"),
    name="Look",
    description="Looks",
    input_schema={"type": "object", "required": ["place"], "properties": {"place": {"type": "string"}}},
    output_schema={"type": "object", "required": ["seen"], "properties": {"seen": {"type": "string"}}},
    idempotent=True,
    timeout_ms=1000,
    implementation=Implementation.SERVICE,
    target="Things.look",
)
TAKE = replace(
    LOOK,
    tool_id=ToolId("thing_take"),
    name="Take",
    idempotent=False,
    target="Things.take",
    output_schema={"type": "object", "required": ["taken"], "properties": {"taken": {"type": "string"}}},
)
SPEC = FlowSpec(
    dact=Dact("find_thing"),
    dax="001",
    intent="Look",
    family=Family.READ,
    description="Find a thing",
    slots={"place": SlotSpec("place", "base", Priority.REQUIRED, prompt="Where?")},
    outputs=("seen",),
    tools=(ToolUse(LOOK.tool_id),),
)


class Things:
    """Tools with scripted answers that count their calls."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers) or [{"seen": "a hat", "taken": "a hat"}]
        self.calls: list[str] = []

    async def look(self, *, place: str) -> Any:
        return self._answer(place)

    async def take(self, *, place: str) -> Any:
        return self._answer(place)

    def _answer(self, place: str) -> Any:
        self.calls.append(place)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


@dataclass
class Journal:
    """A turn's journal that remembers calls, or has unknown outcomes."""

    begun: set[str] = field(default_factory=set)
    results: dict[str, Any] = field(default_factory=dict)

    def idempotency_key(self, key: str) -> str:
        return f"turn_1:{key}"

    async def call(
        self,
        key: str,
        kind: str,
        request: Any,
        run: Callable[[str], Awaitable[Any]],
        *,
        idempotent: bool,
        effect: Effect | None = None,
    ) -> Any:
        if key in self.results:
            return self.results[key]
        if key in self.begun and not idempotent:
            return UnknownOutcome(key, f"turn_1:{key}")
        self.begun.add(key)
        self.results[key] = await run(f"turn_1:{key}")
        return self.results[key]

    async def settle(
        self, unknown: UnknownOutcome, kind: str, request: Any, result: Any, effect: Effect | None = None
    ) -> None:
        self.results[unknown.key] = result

    async def decide_approval(self, approval_id: str, decision: Decision) -> ApprovalRecord | None:
        return None


@dataclass
class Setting:
    run: Execution
    context: TurnContext
    policy: BasePolicy
    things: Things
    journal: Journal
    signals: list[Signal]

    @property
    def failed_checks(self) -> list[str]:
        return [signal.payload["check"] for signal in self.signals if signal.payload.get("ok") is False]


def make_setting(
    spec: FlowSpec = SPEC,
    *,
    tools: tuple[ToolSpec, ...] = (LOOK, TAKE),
    things: Things | None = None,
    slots: dict[str, Any] | None = None,
    journal: Journal | None = None,
    config: DomainConfig = CONFIG,
) -> Setting:
    """Return an Active flow on an otherwise empty stack."""
    flow_type = make_flow_class(spec)
    domain = Domain(
        name="things",
        folder="",
        config=config,
        flows={spec.dact: flow_type},
        entities={},
        tools={tool.tool_id: tool for tool in tools},
    )
    things, journal, signals = things or Things(), journal or Journal(), []
    state = DialogueState.new(SessionId("session"))
    flow: BaseFlow = flow_type(NOW)
    state.stack.push(flow, NOW)
    flow.fill_slots_by_label({"place": "attic"} if slots is None else slots)
    ids = TurnIds(SessionId("session"), DEFAULT_TENANT, None, TurnId("turn_1"))
    changes = TurnChanges()
    context = TurnContext(
        world=World(domain, Registry({}), {}, changes.frames),
        ids=ids,
        text="",
        now=NOW,
        local_now=NOW,
        deadline=NOW + 60,
        journal=journal,  # type: ignore[arg-type]
        call=CallContext(session_id=ids.session_id, turn_id=ids.turn_id),
        recall=Recall(SessionNotes(state)),
        log=TurnLog(ids, signals.append),
        state=state,
        changes=changes,
    )
    runner = ToolRunner(Toolbox(domain.tools, lambda _: {"Things": things}), domain)
    run = Execution(flow, context, runner, runner.find_all(spec.tools))
    return Setting(run, context, BasePolicy(spec), things, journal, signals)
