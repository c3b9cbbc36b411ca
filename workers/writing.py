"""Models for Internal flows: each domain's own, loaded when one of its sessions first needs it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from orchestrator.adapters.domain_folder import load_domain
from orchestrator.adapters.threads import run_in_thread
from orchestrator.bootstrap import Ports
from orchestrator.domain.configuration import DomainConfig
from orchestrator.models import CallContext
from orchestrator.types import Json, JsonObject, SessionId, TurnId

WITHIN_S = 60.0


class ModelWriter:
    """Implements `ports.writing.Writer`."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._configs: dict[str, DomainConfig] = {}

    async def write(
        self,
        prompt_id: str,
        variables: Mapping[str, Json],
        schema: JsonObject,
        *,
        domain: str,
        session_id: SessionId,
        run_id: str,
    ) -> JsonObject | None:
        """See `Writer`. Raises ConfigurationError for a domain that cannot be used."""
        if not self._ports.models.configured:
            return None
        config = await self._config(domain)
        engineer = self._ports.models.engineer(config)
        if engineer is None or not engineer.can_answer(prompt_id):
            return None
        call = CallContext(
            session_id=session_id, turn_id=TurnId(run_id), deadline=time.monotonic() + WITHIN_S
        )
        assistant = config.description or config.persona.name
        return await engineer.structured(prompt_id, {**variables, "assistant": assistant}, schema, call)

    async def _config(self, domain: str) -> DomainConfig:
        known = self._configs.get(domain)
        if known is None:
            place = self._ports.domains.place(domain)
            loaded = await run_in_thread(load_domain, place)
            known = self._configs[domain] = loaded.domain.config
        return known
