"""The gateway's doors over the in-memory twins of the ports, for tests of its calls."""

from __future__ import annotations

from typing import Any

from gateway.doors import Doors, MemoryDoors
from gateway.flows import KnownFlows
from orchestrator.adapters.domain_registry import DomainRegistry
from orchestrator.adapters.event_feed import EventFeed
from orchestrator.adapters.frame_pages import FramePages
from orchestrator.adapters.messages import Messages
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.pressure import PostgresPressure
from orchestrator.adapters.postgres.run_reads import PostgresRuns
from orchestrator.adapters.postgres.standing import PostgresStanding
from orchestrator.adapters.waiting import TurnWaiter
from orchestrator.memory.business_context import BusinessContext
from orchestrator.memory.hashing_embedder import HashedEmbedder
from orchestrator.telemetry import drop_signal
from orchestrator.testing.approvals import MemoryApprovals
from orchestrator.testing.archive import MemoryArchive
from orchestrator.testing.documents import MemoryDocuments
from orchestrator.testing.effects import MemoryEffects
from orchestrator.testing.events import MemoryEventLog, MemoryLiveEvents
from orchestrator.testing.feedback import MemoryFeedback
from orchestrator.testing.inbox import MemoryInbox
from orchestrator.testing.preferences import MemoryPreferences
from orchestrator.testing.scratchpad import MemoryScratchpad
from orchestrator.testing.sessions import MemorySessions
from orchestrator.testing.store import MemoryStore
from orchestrator.testing.wakeup import MemoryWakeup
from orchestrator.types import JsonObject

NOWHERE = "postgresql://127.0.0.1:1/none"


async def _nothing_missing() -> dict[str, str]:
    return {}


async def _no_circuits() -> list[JsonObject]:
    return []


def make_doors(store: MemoryStore, **others: Any) -> Doors:
    """Doors over `store`; `others` replace single ones. What has no twin is tested on the real stores."""
    domains = DomainRegistry("travel")
    inbox = others.pop("inbox", None) or MemoryInbox(store)
    live = others.pop("live", None) or MemoryLiveEvents()
    parts: dict[str, Any] = {
        "inbox": inbox,
        "sessions": MemorySessions(store),
        "wakeup": MemoryWakeup(),
        "wait": TurnWaiter(inbox, live).finished,
        "domains": domains,
        "effects": MemoryEffects(store),
        "approvals": MemoryApprovals(store),
        "probe": _nothing_missing,
        "circuits": _no_circuits,
        "runs": PostgresRuns(Database(NOWHERE)),
        "standing": PostgresStanding(Database(NOWHERE)),
        "pressure": PostgresPressure(Database(NOWHERE)),
        "flows": KnownFlows("travel"),
        "tell_of_runs": Messages("redis://127.0.0.1:1/0").tell_of_runs,
        "events": EventFeed(MemoryEventLog(store), live, inbox),
        "live": live,
        "archive": MemoryArchive(store),
        "feedback": MemoryFeedback(store),
        "scratchpad": MemoryScratchpad(),
        "pages": FramePages(domains, lambda _: lambda _: {}),
        "record_signal": drop_signal,
        "memory": MemoryDoors(
            BusinessContext(MemoryDocuments(), HashedEmbedder(), clock=lambda: 0.0), MemoryPreferences()
        ),
    }
    return Doors(**{**parts, **others})
