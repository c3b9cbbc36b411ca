"""The tools that Internal flows may declare, over this process's ports (IF-2)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from internal_flows.catalogue import Catalogue
from orchestrator.adapters.postgres.housekeeping import PostgresHousekeeping
from orchestrator.adapters.postgres.memory.context import PostgresContextSources
from orchestrator.adapters.postgres.memory.forgetting import PostgresForgetting
from orchestrator.adapters.postgres.memory.records import PostgresCollections
from orchestrator.bootstrap import Ports
from orchestrator.memory.search import RememberedContext
from orchestrator.ports.memory.scratchpad import Entry, EntryKind, Scratchpad
from orchestrator.ports.turns import Inbox
from orchestrator.ports.wakeup import Wakeup
from orchestrator.turns.turn import IfBusy, Submission, TurnInput, TurnKind
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId
from workers.internal.model_writer import ModelWriter

TOOL_NAMES: Final = frozenset(
    {
        "collections",
        "context",
        "forgetting",
        "housekeeping",
        "lanes",
        "memory",
        "preferences",
        "proposals",
        "scratchpad",
        "sessions",
        "sources",
        "triggers",
        "writer",
    }
)
"""What `make_tools` makes, for those who have no ports."""


def make_tools(ports: Ports) -> Mapping[str, Any]:
    """Tools by name."""
    return {
        "forgetting": PostgresForgetting(ports.stores.database),
        "housekeeping": PostgresHousekeeping(ports.stores.database),
        "sessions": ports.stores.sessions,
        "scratchpad": ports.shared.scratchpad,
        "proposals": LaneProposals(ports.stores.inbox, ports.shared.wakeup, ports.shared.scratchpad),
        "preferences": ports.stores.preferences,
        "context": ports.context,
        "writer": ModelWriter(ports),
        "triggers": RunTriggers(ports),
        "lanes": SystemTurns(ports.stores.inbox, ports.shared.wakeup),
        "sources": PostgresContextSources(ports.stores.database),
        "collections": PostgresCollections(ports.stores.database),
        "memory": RememberedContext(ports.stores.preferences, ports.context),
    }


class RunTriggers:
    """The tool `triggers`, once it knows the flows."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._catalogue: Catalogue | None = None

    def bind(self, catalogue: Catalogue) -> None:
        """Say which flows there are; they are made with this among their tools."""
        self._catalogue = catalogue

    async def start(self, trigger: str, tenant_id: str, session_id: SessionId, *, key: str) -> None:
        """Start the flows of a trigger for a session; once per `key`, and one of each at a time."""
        assert self._catalogue is not None, "bind the catalogue first"
        nodes = self._catalogue.new_graph(
            trigger, tenant_id=TenantId(tenant_id), session_id=session_id, flight=session_id
        )
        await self._ports.messages.send_runs(await self._ports.stores.runs.start(nodes, key=key))


class SystemTurns:
    """The tool `lanes`: turns of the system in sessions' lanes."""

    def __init__(self, inbox: Inbox, wakeup: Wakeup) -> None:
        self._inbox = inbox
        self._wakeup = wakeup

    async def submit(
        self, tenant_id: TenantId, session_id: SessionId, name: str, payload: JsonObject, *, key: str
    ) -> str:
        """Submit an action, once per `key`; its turn. Raises SessionClosed, InboxFull, Unavailable."""
        given = TurnInput(action={"name": name, "payload": payload}, form="action", kind=TurnKind.SYSTEM)
        receipt = await self._inbox.submit(
            Submission(session_id, given, tenant_id, idempotency_key=key, if_busy=IfBusy.ENQUEUE)
        )
        await self._wakeup.offer(session_id)
        return receipt.turn_id


class LaneProposals:
    """The tool `proposals`: suggest a change of a session that the flow does not hold (IF-12)."""

    def __init__(self, inbox: Inbox, wakeup: Wakeup, scratchpad: Scratchpad) -> None:
        self._turns = SystemTurns(inbox, wakeup)
        self._scratchpad = scratchpad

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
    ) -> str:
        """Leave a proposal in the scratchpad and in the session's lane; the turn that will decide it.

        The same run proposes a kind once.
        """
        key = f"proposal:{run_id}:{session_id}:{kind}"
        payload: JsonObject = {"kind": kind, "change": change, "epoch": epoch, "flow": flow, "run_id": run_id}
        note = Entry(
            flow, f"run {run_id}", EntryKind.PROPOSAL, time.time(), data=payload, epoch=epoch, entry_id=key
        )
        await self._scratchpad.put(tenant_id, session_id, (note,), operation=key)
        return await self._turns.submit(tenant_id, session_id, "proposal", payload, key=key)
