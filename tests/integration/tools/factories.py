"""Tools, calls and runners for the tests of this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from orchestrator.adapters.tools.transports import Transports
from orchestrator.context import Recall, TurnChanges, TurnContext, TurnIds, TurnLog, World
from orchestrator.dialogue.state import DialogueState
from orchestrator.domain.model import Domain, Implementation, ToolSpec
from orchestrator.domain.registry import Registry
from orchestrator.domain.services import ToolCall
from orchestrator.domain.tool_schema import HttpEntry, McpEntry
from orchestrator.memory.notes import SessionNotes
from orchestrator.models.calling import CallContext
from orchestrator.telemetry import drop_signal
from orchestrator.tools.middleware import ToolPorts
from orchestrator.tools.runner import ToolRunner
from orchestrator.tools.toolbox import Toolbox, ToolError, ToolResult
from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.effect import Effect
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import (
    DEFAULT_TENANT,
    FlowId,
    Json,
    JsonObject,
    SessionId,
    TenantId,
    ToolId,
    TurnId,
    UserId,
)
from tests.configuration import default_config

HERE = Path(__file__).parent
STDIO = ("mcp-server",)
"""The MCP server of this folder, on the path installed by `tests.processes.commands`."""
LOOPBACK: JsonObject = {"network": {"private_networks": ["127.0.0.0/8"], "max_output_bytes": 100_000}}
QUICK: JsonObject = {"resilience": {"backoff_base_s": 0.0, "backoff_max_s": 2.0}}
ANY_OBJECT: JsonObject = {"type": "object"}


def schema(*required: str, **properties: Any) -> JsonObject:
    """Return an object schema. Properties are types or whole schemas."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {
            name: {"type": kind} if isinstance(kind, str) else kind for name, kind in properties.items()
        },
    }


def http_tool(
    url: str, tool_id: str = "thing_get", /, *, inputs: JsonObject | None = None, **more: Any
) -> ToolSpec:
    """Return an HTTP tool. `more`: keys of its http entry, or of the specification."""
    entry_keys = {key: more.pop(key) for key in list(more) if key in HttpEntry.model_fields}
    entry = HttpEntry(url=url, **entry_keys)
    return _spec(
        tool_id, Implementation.HTTP, url, entry.model_dump(mode="json", exclude={"url"}), inputs, more
    )


def mcp_tool(
    tool: str, tool_id: str = "thing_get", /, *, inputs: JsonObject | None = None, **more: Any
) -> ToolSpec:
    """Return a tool of an MCP server: `url`, `command`, or the server of this folder."""
    entry_keys = {key: more.pop(key) for key in list(more) if key in McpEntry.model_fields}
    if not {"url", "command"} & set(entry_keys):
        entry_keys["command"] = STDIO
    entry = McpEntry(tool=tool, **entry_keys)
    return _spec(
        tool_id, Implementation.MCP, tool, entry.model_dump(mode="json", exclude={"tool"}), inputs, more
    )


def service_tool(
    target: str, tool_id: str = "thing_get", /, *, inputs: JsonObject | None = None, **more: Any
) -> ToolSpec:
    return _spec(tool_id, Implementation.SERVICE, target, {}, inputs, more)


def _spec(
    tool_id: str,
    implementation: Implementation,
    target: str,
    options: JsonObject,
    inputs: JsonObject | None,
    more: JsonObject,
) -> ToolSpec:
    given: JsonObject = {
        "name": "The thing",
        "description": "",
        "input_schema": inputs or ANY_OBJECT,
        "output_schema": ANY_OBJECT,
        "idempotent": True,
        "timeout_ms": 60_000,  # a tool's server is a process that must start, also on a busy machine
        "max_retries": 0,
        **more,
    }
    return ToolSpec(
        tool_id=ToolId(tool_id), implementation=implementation, target=target, options=options, **given
    )


def make_domain(*tools: ToolSpec, sections: JsonObject | None = None) -> Domain:
    return Domain(
        name="shop",
        folder=str(HERE),
        config=default_config({**LOOPBACK, **QUICK, **(sections or {})}),
        flows={},
        entities={},
        tools={tool.tool_id: tool for tool in tools},
    )


@dataclass
class Journal:
    """A turn's journal that runs every step, and stores the records."""

    turn_id: TurnId
    recorded: dict[str, Json] = field(default_factory=dict)

    def idempotency_key(self, key: str) -> str:
        return f"{self.turn_id}:{key}"

    async def call(
        self, key: str, kind: str, request: Json, run: Any, *, idempotent: bool, effect: Effect | None = None
    ) -> Json | UnknownOutcome:
        if key not in self.recorded:
            self.recorded[key] = await run(f"{self.turn_id}:{key}")
        return self.recorded[key]

    async def settle(
        self, unknown: UnknownOutcome, kind: str, request: Json, result: Json, effect: Effect | None = None
    ) -> None:
        self.recorded[unknown.key] = result

    async def decide_approval(self, approval_id: str, decision: Decision) -> ApprovalRecord | None:
        return None


def make_context(
    domain: Domain, *, turn: str = "turn_1", user: str | None = "ada", tenant: TenantId = DEFAULT_TENANT
) -> TurnContext:
    session_id = SessionId("session_1")
    state = DialogueState.new(session_id)
    ids = TurnIds(session_id, tenant, UserId(user) if user else None, TurnId(turn))
    changes = TurnChanges()
    return TurnContext(
        world=World(domain, Registry({}), {}, changes.frames),
        ids=ids,
        text="",
        now=1_800_000_000.0,
        local_now=1_800_000_000.0,
        deadline=1_800_000_060.0,
        journal=Journal(TurnId(turn)),  # type: ignore[arg-type]
        call=CallContext(session_id=session_id, turn_id=TurnId(turn)),
        recall=Recall(SessionNotes(state)),
        log=TurnLog(ids, drop_signal),
        state=state,
        changes=changes,
    )


class Caller:
    """A caller of tools. Every call is a separate turn. `close` it."""

    def __init__(
        self,
        *tools: ToolSpec,
        sections: JsonObject | None = None,
        services: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
        ports: ToolPorts | None = None,
    ) -> None:
        self.domain = make_domain(*tools, sections=sections)
        self.transports = Transports(self.domain, environment=environment or {})
        ports = ports or ToolPorts()
        self.runner = ToolRunner(
            Toolbox(self.domain.tools, lambda _: services or {}),
            self.domain,
            ToolPorts(self.transports, ports.limits, ports.cache),
        )
        self.turns = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.transports.close()

    async def call(
        self,
        tool_id: str = "thing_get",
        /,
        *,
        user: str | None = "ada",
        tenant: str = "default",
        **arguments: Any,
    ) -> ToolResult:
        self.turns += 1
        tool = self.runner.find(ToolId(tool_id))
        assert tool is not None
        context = make_context(self.domain, turn=f"turn_{self.turns}", user=user, tenant=TenantId(tenant))
        return await self.runner.call(context, FlowId("flow_1"), tool, arguments)

    async def refused(self, tool_id: str = "thing_get", /, **arguments: Any) -> ToolError:
        result = await self.call(tool_id, **arguments)
        assert isinstance(result, ToolError), result
        return result


async def called(tool: ToolSpec, arguments: JsonObject | None = None, **options: Any) -> ToolResult:
    """Call a tool once. `options`: of its caller."""
    async with Caller(tool, **options) as caller:
        return await caller.call(**(arguments or {}))


async def refused(tool: ToolSpec, arguments: JsonObject | None = None, **options: Any) -> ToolError:
    async with Caller(tool, **options) as caller:
        return await caller.refused(**(arguments or {}))


def tool_call() -> ToolCall:
    return ToolCall(
        "turn_1:tool:thing_get:1", SessionId("session_1"), UserId("ada"), DEFAULT_TENANT, 1_800_000_000.0
    )


async def until(condition: Callable[[], bool]) -> None:
    """Yield to other tasks until a condition is true."""
    while not condition():
        await asyncio.sleep(0.001)
