"""Worker processes that are replaced immediately when they die.

Run ``python -m tests.integration.chaos.processes.replaced_workers COUNT``. Each is a real `WorkerProcess`,
forked from a parent that has imported and trained everything without opening connections, so that a
replacement starts immediately.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import Any

from celery import Celery

from internal_flows.catalogue import Catalogue
from orchestrator.adapters.domains.folder import load_domain
from orchestrator.adapters.postgres.memory.records import PostgresRecords
from orchestrator.agent.build import build_agent
from orchestrator.bootstrap import Ports
from orchestrator.domain.services import ServiceContext
from orchestrator.nlu.system1 import System1
from orchestrator.ports.tasks import TURNS
from orchestrator.settings import load_settings
from orchestrator.types import SessionId, TenantId
from tests.integration.chaos.processes.dying import DyingAgent
from workers.process import WorkerProcess

# Otherwise each process would import it when opening its model.
import_module("orchestrator.adapters.models.chat")
import_module("jsonschema")
SETTINGS = load_settings()
LOADED = load_domain(SETTINGS.domain)
SYSTEM1 = System1.for_domain(LOADED.domain)


def build(name: str, ports: Ports) -> DyingAgent:
    """Create the agent of the domain like `bootstrap`, with the trained models."""
    assert name == LOADED.domain.name

    def services(tenant_id: TenantId) -> dict[str, object]:
        records = PostgresRecords(ports.stores.database, tenant_id, name)
        return {service: cls(ServiceContext(records)) for service, cls in LOADED.services.items()}

    engineer = ports.models.engineer(LOADED.domain.config)
    agent = build_agent(LOADED.domain, LOADED.policies, services, engineer=engineer, system1=SYSTEM1)
    return DyingAgent(agent)


def work() -> None:
    """Take sessions until killed."""
    app = Celery(set_as_current=False)
    process = WorkerProcess(app, SETTINGS, build, lambda _: Catalogue([]), queues=(TURNS,))
    while True:
        process.run_session(SessionId("nobody"))


def keep(count: int) -> None:
    """Keep this number of workers alive until told to stop."""
    children: set[int] = set()

    def stop(*_: Any) -> None:
        for child in children:
            os.kill(child, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    while True:
        while len(children) < count:
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                work()
            children.add(child)
        ended, _ = os.wait()
        children.discard(ended)


if __name__ == "__main__":
    keep(int(sys.argv[1]))
