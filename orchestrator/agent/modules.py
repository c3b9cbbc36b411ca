"""What an Agent is made of: its domain and the three modules. Put together by `build`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.agent.cache import StateCache
from orchestrator.domain.model import Domain
from orchestrator.nlu.module import NLU
from orchestrator.pex.module import PEX
from orchestrator.planning import Planner
from orchestrator.ports.context import ContextGathering
from orchestrator.ports.documents import ContextSearch
from orchestrator.ports.events import LiveEvents
from orchestrator.ports.preferences import PreferenceStore
from orchestrator.ports.scratchpad import Scratchpad
from orchestrator.ports.summary_refresh import SummaryRefresh
from orchestrator.res.module import RES
from orchestrator.telemetry import RecordSignal, drop_signal
from orchestrator.world.registry import Registry


@dataclass(frozen=True, slots=True)
class MemoryPorts:
    """What a turn may ask of what is remembered beyond it; nothing is read before it is asked for."""

    preferences: PreferenceStore
    context: ContextSearch
    scratchpad: Scratchpad


@dataclass(frozen=True, slots=True)
class Modules:
    """One per domain and process. `clock`: unix seconds.

    What may be None is left out: `gather`, the rung of recovery that looks for context; `summary_refresh`, the
    renewal of summaries and memories; `memory`, what is remembered beyond the working state; `live`, the
    listeners of answers that are being written.
    """

    domain: Domain
    registry: Registry
    nlu: NLU
    pex: PEX
    res: RES
    planner: Planner
    gather: ContextGathering | None = None
    summary_refresh: SummaryRefresh | None = None
    clock: Callable[[], float] = time.time
    record_signal: RecordSignal = drop_signal
    live: LiveEvents | None = None
    cache: StateCache = field(default_factory=StateCache)
    memory: MemoryPorts | None = None
    remembering: frozenset[str] = frozenset()
    """The flows by which users have something remembered."""
