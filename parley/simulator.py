"""Run conversations in this process with in-memory stores, to test and evaluate a domain.

Only the stores are simulated: the lane runner, the agent, NLU, PEX and RES are real. This module is public
API, for tests of domains.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from orchestrator.adapters.domains.folder import LoadedDomain, load_domain
from orchestrator.adapters.models.pool import ModelPool
from orchestrator.adapters.sandbox import PythonSandbox, SqlSandbox
from orchestrator.adapters.tools.transports import Transports
from orchestrator.agent.build import build_agent
from orchestrator.agent.modules import AgentPorts, MemoryPorts
from orchestrator.agent.services import make_services
from orchestrator.domain.configuration import DomainConfig, merge_sections
from orchestrator.memory.business_context import BusinessContext
from orchestrator.memory.hashing_embedder import HashingEmbedder
from orchestrator.nlu.system1 import System1
from orchestrator.ports.memory.context import ContextGathering
from orchestrator.ports.tools import ToolTransport
from orchestrator.res.templates import word_for
from orchestrator.runtime.lane import LaneRunner, TurnAgent
from orchestrator.saying import Saying
from orchestrator.telemetry import Signal
from orchestrator.tools.later import LaterResults
from orchestrator.tools.middleware import ToolPorts
from orchestrator.tools.toolbox import Services
from orchestrator.turns.turn import FINISHED, Submission, TurnInput, turn_object
from orchestrator.types import DEFAULT_TENANT, Epoch, JsonObject, SessionId, TenantId, UserId, new_id
from parley.testing.branching import branch_session
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.live import MemoryLiveEvents, MemoryWakeup
from parley.testing.memory import (
    MemoryDocuments,
    MemoryFrames,
    MemoryPreferences,
    MemoryRecords,
    MemoryScratchpad,
)
from parley.testing.scheduled import MemoryScheduledEvents
from parley.testing.store import MemoryStore

START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
"""The default start of simulations, a Friday at noon (UTC)."""

URL = "http://127.0.0.1:8600"
"""The base URL for callbacks of asynchronous tools."""

_STORES = ("store", "records", "live", "scratchpad", "preferences", "documents", "scheduled")


@dataclass(slots=True)
class Simulator:
    """A domain with its dependencies and in-memory stores, for any number of conversations.

    `now`: simulated Unix time, which advances by `pace_s` seconds per turn. `signals`: telemetry signals of all turns.
    """

    loaded: LoadedDomain
    now: float = START.timestamp()
    pace_s: float = 20.0
    store: MemoryStore = field(default_factory=MemoryStore)
    signals: list[Signal] = field(default_factory=list[Signal])
    records: dict[TenantId, MemoryRecords] = field(default_factory=dict[TenantId, MemoryRecords])
    live: MemoryLiveEvents = field(default_factory=MemoryLiveEvents)
    scratchpad: MemoryScratchpad = field(default_factory=MemoryScratchpad)
    agent: TurnAgent | None = None
    transports: Transports | None = None
    preferences: MemoryPreferences = field(default_factory=MemoryPreferences)
    documents: MemoryDocuments = field(default_factory=MemoryDocuments)
    python: PythonSandbox = field(default_factory=PythonSandbox)
    scheduled: MemoryScheduledEvents = field(init=False)

    def __post_init__(self) -> None:
        self.scheduled = MemoryScheduledEvents(self.store)
        self.store.word = self.word

    @classmethod
    def of(
        cls,
        domain: str | Path | LoadedDomain,
        *,
        sections: JsonObject | None = None,
        models: ModelPool | None = None,
        system1: System1 | None = None,
        services: Mapping[str, object] | None = None,
        transport: ToolTransport | None = None,
        gather: ContextGathering | None = None,
        at: datetime = START,
        beside: Simulator | None = None,
    ) -> Simulator:
        """Load a domain and build its agent.

        Args:
            domain: a name, a folder, or a loaded domain.
            sections: configuration that overrides the domain's configuration.
            models: the language models to call. Default: none, only the local classifier.
            system1: a trained local classifier, which saves a second of training.
            services: instances that replace the domain's services, by class name.
            transport: replaces the transport of HTTP and MCP tools.
            gather: gathers context for blocked flows. Default: no context is gathered.
            at: the start of conversations.
            beside: another simulator whose stores to share, to simulate a second worker.

        Raises:
            ConfigurationError: the domain or the additional configuration is invalid.
        """
        loaded = domain if isinstance(domain, LoadedDomain) else load_domain(domain)
        if sections:
            loaded = replace(loaded, domain=replace(loaded.domain, config=_merge_over(loaded, sections)))
        simulator = cls(loaded, at.timestamp())
        if beside is None:
            simulator.store.clock = lambda: datetime.fromtimestamp(simulator.now, UTC)
        for store in _STORES if beside is not None else ():
            setattr(simulator, store, getattr(beside, store))
        if transport is None:
            transport = simulator.transports = Transports(loaded.domain)
        simulator.agent = build_agent(
            loaded.domain,
            loaded.policies,
            simulator._make_services(services or {}),
            tool_ports=ToolPorts(transport, later=LaterResults(simulator.scheduled, URL)),
            engineer=models.engineer(loaded.domain.config) if models is not None else None,
            system1=system1,
            ports=AgentPorts(
                gather=gather,
                memory=simulator.make_memory(),
                live=simulator.live,
                frames=MemoryFrames(simulator.store),
                clock=lambda: simulator.now,
                record_signal=simulator.signals.append,
            ),
        )
        return simulator

    def make_memory(self) -> MemoryPorts:
        context = BusinessContext(self.documents, HashingEmbedder())
        return MemoryPorts(self.preferences, context, self.scratchpad)

    def _make_services(self, stand_ins: Mapping[str, object]) -> Services:
        """Return a function that returns a tenant's services by class name. `stand_ins`: services to use instead."""
        own = make_services(
            self.loaded.domain,
            self.loaded.services,
            lambda tenant_id: self.records.setdefault(tenant_id, MemoryRecords()),
            preferences=self.preferences,
            context=self.make_memory().context,
            scheduled=self.scheduled,
            python=self.python,
            sql=SqlSandbox(),
        )
        return lambda tenant_id: {**own(tenant_id), **stand_ins}

    def word(self, _domain: str, told: Saying) -> str:
        return word_for(self.loaded.domain, told)

    async def close(self) -> None:
        """Close the connections of HTTP tools, and the processes of MCP tools and of model-written Python."""
        if self.transports is not None:
            await self.transports.close()
        await self.python.aclose()

    def converse(self, *, user_id: str | None = None) -> Conversation:
        return Conversation(self, SessionId(new_id("session")), UserId(user_id) if user_id else None)


@dataclass(slots=True)
class Conversation:
    """A session in a simulator. `user_id`: the user whose preferences apply, or None."""

    simulator: Simulator
    session_id: SessionId
    user_id: UserId | None = None
    tenant_id: TenantId = DEFAULT_TENANT
    _inbox: MemoryInbox = field(init=False)
    _runner: LaneRunner = field(init=False)

    def __post_init__(self) -> None:
        store, live = self.simulator.store, self.simulator.live
        self._inbox = MemoryInbox(store)
        self._runner = LaneRunner(
            MemoryLane(store), live, MemoryWakeup(), self._find_agent, word=self.simulator.word
        )

    def branch(self, *, epoch: int | None = None) -> Conversation:
        """Fork this conversation at an epoch (ST-4). Default: the current epoch. Raises NotFound for unknown epochs."""
        since = None if epoch is None else Epoch(epoch)
        made = branch_session(self.simulator.store, self.tenant_id, self.session_id, epoch=since)
        return Conversation(self.simulator, made.session_id, self.user_id, self.tenant_id)

    def say(self, text: str) -> Coroutine[Any, Any, JsonObject]:
        """Send a user message and return the turn object."""
        return self.submit(TurnInput(text=text))

    def act(self, name: str, payload: JsonObject | None = None) -> Coroutine[Any, Any, JsonObject]:
        """Send an action, such as a button click, and return the turn object."""
        return self.submit(TurnInput(action={"name": name, "payload": payload or {}}))

    async def wait(self, seconds: float) -> list[JsonObject]:
        """Advance the clock by `seconds`, deliver the events that become due, and return the resulting turns."""
        simulator = self.simulator
        simulator.now += seconds
        before = await self._inbox.turns(self.tenant_id, session_id=self.session_id)
        ended = {turn.turn_id for turn in before if turn.status in FINISHED}
        await simulator.scheduled.deliver_due()
        return await self._run_others(ended)

    async def answer_call(self, callback_url: str, outcome: JsonObject) -> list[JsonObject]:
        """Send an asynchronous tool's result to its callback URL, and return the resulting turns.

        Raises NotFound if the URL is unknown, or Refused if the call already has a different result.
        """
        before = await self._inbox.turns(self.tenant_id, session_id=self.session_id)
        parts = urlsplit(callback_url)
        query, reference = parse_qs(parts.query), parts.path.rpartition("/")[2]
        tenant, signature = TenantId(query["tenant"][0]), query["signature"][0]
        await self.simulator.scheduled.answer(tenant, reference, signature, outcome)
        return await self._run_others({turn.turn_id for turn in before if turn.status in FINISHED})

    async def _run_others(self, ended: Collection[str]) -> list[JsonObject]:
        """Run the session's queued turns. Return the session's turns, except those in `ended`, oldest first."""
        await self._runner.run(self.session_id)
        turns = await self._inbox.turns(self.tenant_id, session_id=self.session_id)
        return [turn_object(turn) for turn in reversed(turns) if turn.turn_id not in ended]

    async def submit(self, given: TurnInput) -> JsonObject:
        """Submit a turn with the given input and return the turn object."""
        simulator = self.simulator
        simulator.now += simulator.pace_s
        receipt = await self._inbox.submit(
            Submission(
                session_id=self.session_id,
                input=given,
                tenant_id=self.tenant_id,
                create_session=True,
                domain=simulator.loaded.domain.name,
                user_id=self.user_id,
            )
        )
        await self._runner.run(self.session_id)
        return turn_object(await self._inbox.turn(self.tenant_id, receipt.turn_id))

    async def _find_agent(self, domain: str) -> TurnAgent:
        del domain
        assert self.simulator.agent is not None
        return self.simulator.agent


def _merge_over(loaded: LoadedDomain, sections: JsonObject) -> DomainConfig:
    own = loaded.domain.config.model_dump(mode="json")
    return DomainConfig.model_validate(merge_sections(own, sections))
