from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.domain.model import Domain
from orchestrator.domain.registry import Registry
from orchestrator.nlu.module import NLU
from orchestrator.pex.policy import PEX
from orchestrator.plans.planner import Planner
from orchestrator.ports.memory.context import ContextGathering
from orchestrator.ports.memory.documents import ContextSearch
from orchestrator.ports.memory.preferences import PreferenceStore
from orchestrator.ports.memory.scratchpad import Scratchpad
from orchestrator.ports.summary_refresh import SummaryRefresh
from orchestrator.ports.turns import Frames, LiveEvents
from orchestrator.res.module import RES
from orchestrator.telemetry import RecordSignal, drop_signal
from orchestrator.tools.toolbox import Services
from orchestrator.types import Dact


@dataclass(frozen=True, slots=True)
class MemoryPorts:
    """Stores whose data outlives a turn. Turns read these stores only when needed."""

    preferences: PreferenceStore
    context: ContextSearch
    scratchpad: Scratchpad


@dataclass(frozen=True, slots=True)
class AgentPorts:
    """The ports of an Agent. Unavailable ports are None.

    `gather`: gathers context during recovery. `summary_refresh`: refreshes summaries and memories. `memory`:
    preferences, documents and scratchpad entries. `live`: publishes streamed answers. `frames`: data
    displayed in earlier turns. `clock`: returns Unix seconds.
    """

    gather: ContextGathering | None = None
    summary_refresh: SummaryRefresh | None = None
    memory: MemoryPorts | None = None
    live: LiveEvents | None = None
    frames: Frames | None = None
    clock: Callable[[], float] = time.time
    record_signal: RecordSignal = drop_signal


@dataclass(frozen=True, slots=True)
class Modules:
    """The modules for one domain in one process.

    `services`: returns a tenant's service instances. `remembering`: names of flows that store users'
    memories. `answering`: name of the flow that answers from documents, or None if the domain has no such
    flow.
    """

    domain: Domain
    registry: Registry
    nlu: NLU
    pex: PEX
    res: RES
    planner: Planner
    services: Services
    ports: AgentPorts = field(default_factory=AgentPorts)
    remembering: frozenset[str] = frozenset()
    answering: Dact | None = None
