"""Models for Internal flows: each domain's own, loaded when one of its sessions first needs it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.adapters.threads import run_in_thread
from orchestrator.bootstrap import Ports
from orchestrator.domain.configuration import DomainConfig
from orchestrator.models.calling import CallContext
from orchestrator.types import Json, JsonObject, SessionId, TurnId

WITHIN_S = 60.0


class ModelWriter:
    """The tool `writer` of Internal flows: one structured answer to a named prompt, outside any turn."""

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
        """Ask for an answer that fits the schema; None when no model is configured or can be asked now.

        Args:
            prompt_id: of the prompts that ship; `variables` are its data and settings, except
                ``assistant``, which the domain's configuration gives.
            variables: see `prompt_id`.
            schema: JSON Schema of an object.
            domain: whose models are asked.
            session_id: for whom; its budget counts.
            run_id: named to the endpoint in place of a turn.

        Raises:
            ModelUnavailable, ModelOutputInvalid, BudgetExceeded: there is no usable answer.
            ConfigurationError: the domain cannot be used.
        """
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
