"""An AG-UI client that checks each event with the protocol's own Python types."""

from __future__ import annotations

from typing import Any

import httpx
from ag_ui.core import Event as AguiEvent
from ag_ui.core import EventType
from pydantic import TypeAdapter

_EVENTS: TypeAdapter[Any] = TypeAdapter(AguiEvent)


async def run(
    url: str, thread: str, run_id: str, text: str | None = None, *, domain: str = "travel", **more: Any
) -> list[Any]:
    """Run once, and return the events, or the status and the text of a refusal."""
    messages = [] if text is None else [{"id": f"{run_id}-said", "role": "user", "content": text}]
    body = {"threadId": thread, "runId": run_id, "messages": messages, "forwardedProps": {"domain": domain}}
    async with (
        httpx.AsyncClient(base_url=url, timeout=60) as http,
        http.stream("POST", "/v1/agui", json={**body, **more}) as answer,
    ):
        if answer.status_code != 200:
            return [answer.status_code, (await answer.aread()).decode()]
        lines = [line async for line in answer.aiter_lines()]
    return [_EVENTS.validate_json(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def text_of(events: list[Any]) -> str:
    return "".join(one.delta for one in events if one.type is EventType.TEXT_MESSAGE_CONTENT)


def interrupts_of(events: list[Any]) -> dict[str, str]:
    """Return the open approvals at the end of a run, by tool."""
    outcome = events[-1].outcome
    return (
        {one.metadata["tool_id"]: one.id for one in outcome.interrupts} if outcome.type == "interrupt" else {}
    )


def answer(interrupt: str, *, approved: bool = True, reason: str | None = None) -> dict[str, Any]:
    return {
        "interruptId": interrupt,
        "status": "resolved",
        "payload": {"approved": approved, "reason": reason},
    }
