import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache

from gateway.auth.authentication import Access, Rates, TokenReader
from gateway.auth.binding import requires_callers
from gateway.dependencies import (
    Dependencies,
    MemoryServices,
    Operations,
    RunServices,
    SessionServices,
    TurnServices,
)
from gateway.frame_pages import FramePages
from internal_flows.builtin import FLOWS
from internal_flows.catalogue import Catalogue, flows_among
from orchestrator.adapters.domains.code import import_internal_flows
from orchestrator.adapters.domains.folder import served_folders
from orchestrator.adapters.postgres.turns.archive import PostgresArchive, PostgresFeedback
from orchestrator.adapters.postgres.turns.search import PostgresTurnSearch
from orchestrator.adapters.redis.worker_registry import WorkerRegistry
from orchestrator.bootstrap import Ports, make_services, open_ports
from orchestrator.domain.compile.problems import Problems
from orchestrator.settings import Settings
from orchestrator.telemetry import log_signal


@asynccontextmanager
async def open_dependencies(
    settings: Settings, tokens: TokenReader | None = None, catalogue: Catalogue | None = None
) -> AsyncGenerator[Dependencies]:
    """Open the ports and yield the dependencies, even if the stores don't respond yet.

    `catalogue`: background flows to use. Default: Parley's own and those of the configured domains.
    """
    async with open_ports(settings, tenant_bound=settings.row_security) as ports:
        yield Dependencies(
            turns=TurnServices(
                inbox=ports.stores.inbox,
                scheduled=ports.stores.scheduled,
                wakeup=ports.shared.wakeup,
                waiter=ports.waiter,
                search=PostgresTurnSearch(ports.stores.database),
                longest_s=settings.longest_response_s or math.inf,
            ),
            sessions=SessionServices(
                store=ports.stores.sessions,
                domains=ports.domains,
                events=ports.events,
                archive=PostgresArchive(ports.stores.database),
                effects=ports.stores.effects,
                scratchpad=ports.shared.scratchpad,
                pages=FramePages(ports.domains, lambda loaded: make_services(loaded, ports)),
            ),
            runs=RunServices(
                store=ports.stores.runs,
                catalogue=lambda: catalogue or load_flows(settings.domain),
                load=ports.stores.load,
                notify_workers=ports.messages.send_runs,
            ),
            memory=MemoryServices(ports.context, ports.stores.preferences),
            operations=Operations(
                probe=ports.probe,
                off=WorkerRegistry(ports.shared.redis).off,
                stats=ports.stores.load,
                record_signal=log_signal,
                flower_url=settings.flower_url,
                evaluations=settings.evaluations_folder,
            ),
            approvals=ports.stores.approvals,
            feedback=PostgresFeedback(ports.stores.database),
            webhooks=ports.stores.webhooks,
            access=_access(settings, ports, tokens),
        )


@cache
def load_flows(domain: str) -> Catalogue:
    """Return the background flows of Parley and of the served domains.

    Flows in invalid files are missing. Workers report the problems with these files. `domain`: value of
    PARLEY_DOMAIN, which selects the served domains.
    """
    own = [import_internal_flows(folder, Problems()) for folder in served_folders(domain)]
    return Catalogue([*FLOWS, *(flow for names in own for flow in flows_among(names))])


def _access(settings: Settings, ports: Ports, tokens: TokenReader | None) -> Access:
    return Access(
        required=requires_callers(settings),
        keys=ports.stores.keys,
        tokens=tokens,
        tickets=ports.shared.tickets,
        limits=ports.shared.request_limits,
        rates=Rates(settings.caller_rate, settings.tenant_rate, settings.session_rate),
        open_metrics=settings.open_metrics,
    )
