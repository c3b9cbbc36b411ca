"""The tools that background flows can declare (IF-2)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from internal_flows.catalogue import Catalogue
from orchestrator.adapters.postgres.maintenance import PostgresMaintenance
from orchestrator.adapters.postgres.memory.documents import PostgresDocuments
from orchestrator.adapters.postgres.memory.forgetting import PostgresForgetting
from orchestrator.adapters.postgres.memory.material import PostgresSessionMaterial
from orchestrator.adapters.postgres.memory.preferences import PostgresPreferences
from orchestrator.adapters.postgres.memory.records import PostgresCollectionRows, PostgresCollections
from orchestrator.adapters.postgres.memory.scratchpad import PostgresScratchpadArchive
from orchestrator.adapters.redis.scratchpad import RedisScratchpad
from orchestrator.bootstrap import Ports
from orchestrator.memory.business_context import BusinessContext
from orchestrator.memory.search import RememberedContext
from orchestrator.runtime.submit import Submitter
from orchestrator.turns.scheduled import EVENT
from orchestrator.turns.turn import IfBusy, Submission, TurnInput, TurnKind
from orchestrator.types import JsonObject, SessionId, TenantId
from workers.internal.model_writer import ModelWriter
from workers.internal.session_side import NotedProposals, SessionSide


def make_session_side(ports: Ports) -> SessionSide:
    return SessionSide(PostgresSessionMaterial(ports.stores.database), SystemTurns(ports.submitter))


class RunTriggers:
    """The tool `triggers`, which starts flows. Call `bind` before use."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._catalogue: Catalogue | None = None

    def bind(self, catalogue: Catalogue) -> None:
        """Set the catalog, which is created after its tools."""
        self._catalogue = catalogue

    async def start(self, trigger: str, tenant_id: str, session_id: SessionId, *, key: str) -> None:
        """Start a trigger's flows for a session, once per `key`.

        Each flow has at most one active run per session.
        """
        assert self._catalogue is not None, "bind the catalogue first"
        nodes = self._catalogue.new_graph(
            trigger, tenant_id=TenantId(tenant_id), session_id=session_id, flight=session_id
        )
        await self._ports.messages.send_runs(await self._ports.stores.runs.start(nodes, key=key))


class SystemTurns:
    """The tool `lanes`, which submits system turns to sessions."""

    def __init__(self, submitter: Submitter) -> None:
        self._submitter = submitter

    async def send_event(
        self, tenant_id: TenantId, session_id: SessionId, name: str, payload: JsonObject, *, key: str
    ) -> str:
        """Submit an outside event, once per `key`, and return its turn ID.

        Raises the same errors as `submit`.
        """
        return await self.submit(tenant_id, session_id, EVENT, {"name": name, "payload": payload}, key=key)

    async def submit(
        self, tenant_id: TenantId, session_id: SessionId, name: str, payload: JsonObject, *, key: str
    ) -> str:
        """Submit an action, once per `key`, and return its turn ID.

        Raises SessionClosed, InboxFull, NotFound or Unavailable.
        """
        given = TurnInput(action={"name": name, "payload": payload}, form="action", kind=TurnKind.SYSTEM)
        turn = Submission(session_id, given, tenant_id, idempotency_key=key, if_busy=IfBusy.ENQUEUE)
        return (await self._submitter.submit(turn)).turn_id


def _notes(ports: Ports) -> RedisScratchpad:
    return RedisScratchpad(ports.shared.redis, PostgresScratchpadArchive(ports.flows_database))


def _documents(ports: Ports) -> BusinessContext:
    return BusinessContext(PostgresDocuments(ports.flows_database), ports.context.embedder)


_Make = Callable[[Ports], Any]

SESSION_TOOLS: Final[Mapping[str, _Make]] = {
    "scratchpad": _notes,
    "proposals": lambda ports: NotedProposals(_notes(ports)),
    "preferences": lambda ports: PostgresPreferences(ports.flows_database),
    "context": _documents,
    "memory": lambda ports: RememberedContext(PostgresPreferences(ports.flows_database), _documents(ports)),
    "sources": lambda ports: PostgresCollectionRows(ports.flows_database),
    "writer": lambda ports: ModelWriter(ports.models, ports.domains.config),
}
"""Factories of the tools for session flows, by tool name. These tools have no rights on sessions (IF-17)."""
TOOLS: Final[Mapping[str, _Make]] = {
    **SESSION_TOOLS,
    "forgetting": lambda ports: PostgresForgetting(ports.stores.database),
    "maintenance": lambda ports: PostgresMaintenance(ports.stores.database),
    "sessions": lambda ports: ports.stores.sessions,
    "triggers": RunTriggers,
    "lanes": lambda ports: SystemTurns(ports.submitter),
    "collections": lambda ports: PostgresCollections(ports.stores.database),
}
"""Factories of all tools, by tool name. The tools for maintenance flows have the runtime's rights."""


def make_tools(ports: Ports) -> Mapping[str, Any]:
    return {name: make(ports) for name, make in TOOLS.items()}
