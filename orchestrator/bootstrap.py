"""Connect the adapters, agents and runtime. This is the only module that imports all of them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from redis.asyncio import Redis

from orchestrator.adapters.context_gathering import RunsContextGathering
from orchestrator.adapters.domains.folder import DomainRegistry, LoadedDomain, load_domain
from orchestrator.adapters.event_feed import EventFeed, Waiter, wait_for_turn
from orchestrator.adapters.models.pool import ModelPool, open_embedder, read_endpoints
from orchestrator.adapters.models.trained_files import TrainedFiles
from orchestrator.adapters.postgres.claims import WorkerLock
from orchestrator.adapters.postgres.events import PostgresEventLog
from orchestrator.adapters.postgres.keys import PostgresKeys
from orchestrator.adapters.postgres.lanes.claim_repair import Quarantined, Suspected
from orchestrator.adapters.postgres.lanes.lane import SUSPECTED_AFTER, Freed, PostgresLane
from orchestrator.adapters.postgres.memory.documents import PostgresDocuments
from orchestrator.adapters.postgres.memory.preferences import PostgresPreferences
from orchestrator.adapters.postgres.memory.records import PostgresRecords
from orchestrator.adapters.postgres.memory.scratchpad import PostgresScratchpadArchive
from orchestrator.adapters.postgres.migrate import ping_schema
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.roles import SESSION_FLOWS, SESSION_FLOWS_CONNECTIONS
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.postgres.sessions import PostgresSessions
from orchestrator.adapters.postgres.status import PostgresStatus
from orchestrator.adapters.postgres.turns.approvals import PostgresApprovals
from orchestrator.adapters.postgres.turns.archive import PostgresArchive, PostgresEffects
from orchestrator.adapters.postgres.turns.inbox import PostgresInbox
from orchestrator.adapters.postgres.turns.outbox import PostgresOutbox
from orchestrator.adapters.postgres.turns.scheduled import PostgresScheduledEvents
from orchestrator.adapters.postgres.webhooks import PostgresWebhooks
from orchestrator.adapters.redis.client import connect
from orchestrator.adapters.redis.events import RedisEvents
from orchestrator.adapters.redis.scratchpad import RedisScratchpad
from orchestrator.adapters.redis.shared import (
    RedisRateLimits,
    RedisRequestLimits,
    RedisSpending,
    RedisTickets,
    RedisToolCache,
)
from orchestrator.adapters.redis.wakeup import RedisWakeup
from orchestrator.adapters.sandbox import PythonSandbox, SqlSandbox
from orchestrator.adapters.task_sender import TaskSender
from orchestrator.adapters.threads import run_in_thread
from orchestrator.adapters.tools.transports import Transports
from orchestrator.agent.services import make_services as make_tenant_services
from orchestrator.errors import Unavailable
from orchestrator.memory.business_context import BusinessContext
from orchestrator.models.breaker import BreakerPolicy
from orchestrator.ports.summary_refresh import SummaryRefresh
from orchestrator.res.languages import load_sayings
from orchestrator.runtime.lane import TurnAgent
from orchestrator.runtime.submit import Submitter
from orchestrator.saying import Saying
from orchestrator.settings import Settings
from orchestrator.telemetry import Signal, log_signal
from orchestrator.telemetry.metrics import count_signal
from orchestrator.telemetry.signals import keep
from orchestrator.tools.later import LaterResults
from orchestrator.tools.middleware import ToolPorts
from orchestrator.tools.toolbox import Services

TAKE_REPLY_TIMEOUT_S = 5.0
"""Timeout of Redis replies to `Wakeup.take`, in seconds. It must exceed the longest `timeout_s` of a call."""
PROBED_WITHIN_S = 2.0
"""Time without a response after which a store counts as unavailable, in seconds."""


@dataclass(frozen=True, slots=True)
class Stores:
    database: Database
    inbox: PostgresInbox
    sessions: PostgresSessions
    effects: PostgresEffects
    approvals: PostgresApprovals
    outbox: PostgresOutbox
    scheduled: PostgresScheduledEvents
    runs: PostgresRuns
    keys: PostgresKeys
    webhooks: PostgresWebhooks
    load: PostgresStatus
    preferences: PostgresPreferences


@dataclass(frozen=True, slots=True)
class Shared:
    redis: Redis
    live: RedisEvents
    wakeup: RedisWakeup
    tickets: RedisTickets
    request_limits: RedisRequestLimits
    tool_limits: RedisRateLimits
    tool_cache: RedisToolCache
    scratchpad: RedisScratchpad


@dataclass(frozen=True, slots=True)
class Ports:
    """The adapters of one process, for use on its event loop.

    Args:
        flows_database: separate connections to the same database, with the rights of a session's background flows.
        closing: the exit stack for resources that are opened later.
        summary_refresh: updates summaries and memories on demand, or None if the process can't start runs.
    """

    settings: Settings
    stores: Stores
    flows_database: Database
    shared: Shared
    events: EventFeed
    waiter: Waiter
    messages: TaskSender
    domains: DomainRegistry
    sandbox: PythonSandbox
    sql_sandbox: SqlSandbox
    closing: AsyncExitStack
    models: ModelPool
    context: BusinessContext
    summary_refresh: SummaryRefresh | None = None

    @property
    def submitter(self) -> Submitter:
        return Submitter(inbox=self.stores.inbox, scheduled=self.stores.scheduled, wakeup=self.shared.wakeup)

    async def probe(self) -> dict[str, str]:
        """Return the reason for each store that does not respond, by store name."""
        pings = {"postgresql": partial(ping_schema, self.stores.database), "redis": self.shared.live.ping}
        found = await asyncio.gather(*(_complaint(ping) for ping in pings.values()))
        return {name: why for name, why in zip(pings, found, strict=True) if why is not None}


async def _complaint(ping: Callable[[], Awaitable[None]]) -> str | None:
    try:
        async with asyncio.timeout(PROBED_WITHIN_S):
            await ping()
    except TimeoutError:
        return f"No response within {PROBED_WITHIN_S:g} s."
    except Unavailable as error:
        return str(error)
    return None


@asynccontextmanager
async def open_ports(settings: Settings, *, tenant_bound: bool = False) -> AsyncGenerator[Ports]:
    """Open a process's adapters, even if the stores are not available yet.

    `tenant_bound`: restrict database queries to the acting tenant, through row-level security.
    """
    async with AsyncExitStack() as stack:
        connect_to = partial(Database, settings.database_url, pooled=settings.direct_database_url is not None)
        database = connect_to(size=settings.database_pool_size, tenant_bound=tenant_bound)
        await stack.enter_async_context(database)
        flows_database = connect_to(size=SESSION_FLOWS_CONNECTIONS, role=SESSION_FLOWS)
        await stack.enter_async_context(flows_database)
        redis = await stack.enter_async_context(connect(settings.redis_url))
        taking = await stack.enter_async_context(
            connect(settings.redis_url, reply_timeout_s=TAKE_REPLY_TIMEOUT_S, max_connections=4)
        )
        messages = TaskSender(settings.broker_url or settings.redis_url)
        stack.callback(messages.close)
        live = RedisEvents(redis)
        stack.push_async_callback(live.close)
        domains = DomainRegistry(settings.domain)
        inbox = PostgresInbox(
            database,
            session_limit=settings.session_inbox_limit,
            total_limit=settings.total_inbox_limit,
            word=partial(render_told, domains),
        )
        sandbox = PythonSandbox()
        stack.push_async_callback(sandbox.aclose)
        events = EventFeed(PostgresEventLog(database), live, inbox)
        stack.push_async_callback(events.close)
        shared = Shared(
            redis=redis,
            live=live,
            wakeup=RedisWakeup(redis, messages.wake, waiting=taking),
            tickets=RedisTickets(redis),
            request_limits=RedisRequestLimits(redis),
            tool_limits=RedisRateLimits(redis),
            tool_cache=RedisToolCache(redis),
            scratchpad=RedisScratchpad(redis, PostgresScratchpadArchive(database)),
        )
        yield Ports(
            settings=settings,
            stores=_open_stores(database, inbox),
            flows_database=flows_database,
            shared=shared,
            events=events,
            waiter=partial(wait_for_turn, inbox, live),
            messages=messages,
            domains=domains,
            sandbox=sandbox,
            sql_sandbox=SqlSandbox(),
            closing=stack,
            models=_open_models(settings, redis, stack),
            context=BusinessContext(PostgresDocuments(database), open_embedder(settings, stack)),
        )


def _open_stores(database: Database, inbox: PostgresInbox) -> Stores:
    return Stores(
        database=database,
        inbox=inbox,
        sessions=PostgresSessions(database),
        effects=PostgresEffects(database),
        approvals=PostgresApprovals(database),
        outbox=PostgresOutbox(database),
        scheduled=PostgresScheduledEvents(database, inbox),
        runs=PostgresRuns(database),
        keys=PostgresKeys(database),
        webhooks=PostgresWebhooks(database),
        load=PostgresStatus(database),
        preferences=PostgresPreferences(database),
    )


def _open_models(settings: Settings, redis: Redis, stack: AsyncExitStack) -> ModelPool:
    """Open the configured models. Their costs are counted in Redis, across all processes."""

    def record(signal: Signal) -> None:
        log_signal(signal)
        count_signal(signal)
        keep(signal)

    models = ModelPool(
        read_endpoints(settings),
        model=settings.model,
        fallback=settings.fallback_model,
        breaker=BreakerPolicy(settings.model_failures, settings.model_cooling_s),
        spending=RedisSpending(redis),
        record=record,
        keep_prompts=settings.keep_prompts,
    )
    stack.push_async_callback(models.aclose)
    return models


def render_told(domains: DomainRegistry, domain: str, told: Saying) -> str:
    """Return a message without variables in a domain's language."""
    return load_sayings(domains.language(domain))[told.code]


@asynccontextmanager
async def open_lane(
    ports: Ports,
    *,
    crashes_below: int | None = SUSPECTED_AFTER,
    suspected: Suspected = lambda _session, _crashes: None,
    quarantined: Quarantined = lambda _session, _turn: None,
    freed: Freed = lambda _sessions: None,
) -> AsyncGenerator[PostgresLane]:
    """Open the session lanes for this worker. A database lock proves that the worker is alive. Raises Unavailable.

    For the arguments after `ports`, see `PostgresLane`.
    """
    settings = ports.settings
    async with WorkerLock(settings.direct_database_url or settings.database_url) as worker:
        yield PostgresLane(
            ports.stores.database,
            worker,
            lease_ttl_s=settings.lease_ttl_s,
            turn_deadline_s=settings.turn_deadline_s,
            sequence_gap_timeout_s=settings.sequence_gap_timeout_s,
            max_attempts=settings.max_attempts,
            crashes_below=crashes_below,
            suspected=suspected,
            quarantined=quarantined,
            freed=freed,
            word=partial(render_told, ports.domains),
        )


BuildAgent = Callable[[str, Ports], TurnAgent]
"""A function that builds a domain's agent. It runs in a thread, because it can take seconds."""


def make_services(loaded: LoadedDomain, ports: Ports) -> Services:
    """Return a function that creates a tenant's service instances with this process's stores."""
    return make_tenant_services(
        loaded.domain,
        loaded.services,
        lambda tenant_id: PostgresRecords(ports.stores.database, tenant_id, loaded.domain.name),
        preferences=ports.stores.preferences,
        context=ports.context,
        scheduled=ports.stores.scheduled,
        python=ports.sandbox,
        sql=ports.sql_sandbox,
    )


def build_agent(name: str, ports: Ports) -> TurnAgent:
    """Build a domain's agent with this process's stores. Raises ConfigurationError with all problems."""
    # These imports make up a fifth of all imports, and most processes don't build an agent.
    from orchestrator.agent.build import build_agent as assemble_agent  # noqa: PLC0415
    from orchestrator.agent.modules import AgentPorts, MemoryPorts  # noqa: PLC0415
    from orchestrator.nlu.system1 import System1  # noqa: PLC0415

    loaded = load_domain(ports.domains.place(name))
    domain, folder = loaded.domain, ports.settings.trained_folder
    transports = Transports(domain)
    ports.closing.push_async_callback(transports.close)
    later = LaterResults(ports.stores.scheduled, ports.settings.public_url)
    tool_ports = ToolPorts(transports, ports.shared.tool_limits, ports.shared.tool_cache, later)
    return assemble_agent(
        domain,
        loaded.policies,
        make_services(loaded, ports),
        tool_ports=tool_ports,
        engineer=ports.models.engineer(domain.config),
        system1=System1.for_domain(domain, folder and TrainedFiles(folder), apart=True),
        ports=AgentPorts(
            gather=RunsContextGathering(ports.stores.runs, ports.messages.send_runs),
            summary_refresh=ports.summary_refresh,
            memory=MemoryPorts(ports.stores.preferences, ports.context, ports.shared.scratchpad),
            live=ports.shared.live,
            frames=PostgresArchive(ports.stores.database),
            record_signal=count_signal,
        ),
        development=ports.settings.development,
    )


class AgentCatalogue:
    """The agents of one process, each built when its domain is first used."""

    def __init__(self, build: BuildAgent, ports: Ports) -> None:
        self._build = build
        self._ports = ports
        self._agents: dict[str, TurnAgent] = {}
        self._building = asyncio.Lock()

    async def get(self, domain: str) -> TurnAgent:
        """Return a domain's agent. Raises ConfigurationError if the domain is invalid."""
        agent = self._agents.get(domain)
        if agent is None:
            async with self._building:
                agent = self._agents.get(domain)
                if agent is None:
                    agent = await run_in_thread(self._build, domain, self._ports)
                    self._agents[domain] = agent
        return agent
