from fastapi import APIRouter
from pydantic import Field

from gateway.dependencies import TheSessions
from gateway.schemas import ResponseModel, optional
from orchestrator.dialogue.specification import Priority
from orchestrator.errors import NotFound
from orchestrator.turns.submission import Identifier

router = APIRouter(prefix="/v1/domains", tags=["sessions"])


class SlotOutline(ResponseModel):
    name: str
    priority: Priority
    group: str | None = optional("Group of an elective slot. At least one slot in the group must be filled.")


class FlowOutline(ResponseModel):
    """A flow as declared by its domain."""

    dact: str = Field(examples=["book_flight"])
    intent: str
    description: str
    slots: list[SlotOutline]
    confirm: bool = Field(description="Whether the user must confirm before a tool with a side effect runs.")
    tools: list[str]


@router.get("/{domain}/flows")
async def list_flows(domain: Identifier, sessions: TheSessions) -> list[FlowOutline]:
    """List a domain's flows, with each flow's slots and tools in order of use."""
    if domain not in sessions.domains.names():
        raise NotFound("domain", domain)
    return [
        FlowOutline(
            dact=name,
            intent=flow.intent or "",
            description=flow.description,
            slots=[
                SlotOutline(name=slot, priority=entry.priority, group=entry.group)
                for slot, entry in flow.slots.items()
            ],
            confirm=flow.confirm,
            tools=[tool.tool_id for tool in flow.tools if tool.tool_id],
        )
        for name, flow in sessions.domains.flows(domain).items()
    ]
