"""Access to sessions for background flows, which have no rights on sessions (IF-12, IF-17).

A run receives session content when it starts. Workers submit its proposals to the session lane before they
record its results. In the session lane, the Agent accepts or drops the proposals.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from internal_flows.stages import InternalFlow, RunContext
from orchestrator.adapters.postgres.memory.material import PostgresSessionMaterial
from orchestrator.errors import NotFound, Refused
from orchestrator.ports.memory.scratchpad import Entry, EntryKind, Scratchpad
from orchestrator.telemetry import get_logger
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId

PROPOSALS: Final = "proposals"
_PROPOSAL: Final = "proposal"
"""Action name of the system turn that contains a proposal."""

_log = get_logger(__name__)


class Lanes(Protocol):
    def submit(
        self, tenant_id: TenantId, session_id: SessionId, name: str, payload: JsonObject, *, key: str
    ) -> Awaitable[str]:
        """Submit a system action, once per `key`. Raises SessionClosed, InboxFull, NotFound or Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class _Proposal:
    tenant_id: TenantId
    session_id: SessionId
    key: str
    payload: JsonObject


@dataclass(frozen=True, slots=True)
class NotedProposals:
    """The tool `proposals`, which flows use to propose changes to sessions (IF-12)."""

    scratchpad: Scratchpad
    noted: list[_Proposal] = field(default_factory=list[_Proposal])

    async def propose(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        kind: str,
        change: JsonObject,
        *,
        epoch: Epoch,
        flow: str,
        run_id: str,
    ) -> None:
        """Record a proposal in the session's scratchpad. The executor submits it to the session lane later.

        A run can make one proposal of each kind per session. `epoch`: version of the session that the flow
        has read.
        """
        key = f"proposal:{run_id}:{session_id}:{kind}"
        payload: JsonObject = {"kind": kind, "change": change, "epoch": epoch, "flow": flow, "run_id": run_id}
        note = Entry(
            flow, f"run {run_id}", EntryKind.PROPOSAL, time.time(), data=payload, epoch=epoch, entry_id=key
        )
        await self.scratchpad.put(tenant_id, session_id, (note,), operation=key)
        self.noted.append(_Proposal(tenant_id, session_id, key, payload))


class SessionSide:
    def __init__(self, material: PostgresSessionMaterial, lanes: Lanes) -> None:
        self._material = material
        self._lanes = lanes

    def equip(self, context: RunContext) -> RunContext:
        """Return the context with an empty list of proposals, if the flow uses the tool `proposals`."""
        tools = dict(context.tools)
        if isinstance(proposals := tools.get(PROPOSALS), NotedProposals):
            tools[PROPOSALS] = NotedProposals(proposals.scratchpad)
        return replace(context, tools=tools)

    async def brief(self, flow: InternalFlow, context: RunContext) -> RunContext:
        """Return the context with the session content that the flow declares, if any. Raises Unavailable."""
        if context.session_id is None or not flow.material:
            return context
        material = await self._material.collect(context.tenant_id, context.session_id, flow.material)
        return replace(context, material=material)

    async def hand_over(self, context: RunContext) -> None:
        """Submit proposals to the session lanes, and drop rejected proposals.

        Safe to repeat. Raises Unavailable.
        """
        proposals = context.tools.get(PROPOSALS)
        while isinstance(proposals, NotedProposals) and proposals.noted:
            one = proposals.noted[0]
            try:
                await self._lanes.submit(one.tenant_id, one.session_id, _PROPOSAL, one.payload, key=one.key)
            except (Refused, NotFound) as error:  # the session is closed, deleted or too busy
                _log.info("A session refused a proposal.", session=one.session_id, error=error)
            proposals.noted.pop(0)
