"""Create a domain's services. This module has few imports, because gateways also create services."""

from collections.abc import Callable, Mapping
from functools import cache, partial

from orchestrator.domain.model import Domain
from orchestrator.domain.services import Records, ServiceContext
from orchestrator.memory.business_context import DomainDocuments
from orchestrator.memory.user_memory import UserMemory
from orchestrator.ports.memory.documents import ContextSearch
from orchestrator.ports.memory.preferences import PreferenceStore
from orchestrator.ports.sandbox import Sandbox, SqlSandbox
from orchestrator.ports.scheduled import ScheduledEvents
from orchestrator.res.templates import word_for
from orchestrator.tools.guardrails.apply import GuardedPython, GuardedSql
from orchestrator.tools.later import ServiceEvents
from orchestrator.tools.toolbox import Services
from orchestrator.types import TenantId


def make_services(
    domain: Domain,
    classes: Mapping[str, type],
    records: Callable[[TenantId], Records],
    *,
    preferences: PreferenceStore,
    context: ContextSearch,
    scheduled: ScheduledEvents,
    python: Sandbox,
    sql: SqlSandbox,
) -> Services:
    """Return a function that returns a tenant's service instances. Each tenant's instances are created once.

    `classes`: the domain's service classes, by name. `records`: returns a tenant's records.
    """
    guarded_python = GuardedPython(python, domain.config.guardrails.allowed_imports)
    guarded_sql = GuardedSql(sql)
    memory = UserMemory(preferences, domain, partial(word_for, domain))
    documents = DomainDocuments(context, domain.name)
    events = ServiceEvents(scheduled, domain.events)

    @cache
    def services(tenant_id: TenantId) -> Mapping[str, object]:
        own = records(tenant_id)
        return {
            name: service(
                ServiceContext(
                    own,
                    dict(domain.config.services.get(name, {})),
                    guarded_python,
                    memory,
                    guarded_sql,
                    documents,
                    events,
                )
            )
            for name, service in classes.items()
        }

    return services
