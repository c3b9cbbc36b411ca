"""Models for background flows: each domain's own, or the one in a run's options."""

import time
from collections.abc import Callable, Mapping

from orchestrator.adapters.models.pool import ModelPool
from orchestrator.domain.configuration import DomainConfig, ModelName
from orchestrator.models.calling import CallContext
from orchestrator.types import Json, JsonObject, SessionId, TenantId, TurnId, UserId

WITHIN_S = 60.0


class ModelWriter:
    """The tool `writer` of background flows: one structured answer to a named prompt, outside any turn."""

    def __init__(self, models: ModelPool, configure: Callable[[str], DomainConfig]) -> None:
        self._models = models
        self._configure = configure

    async def write(
        self,
        prompt_id: str,
        variables: Mapping[str, Json],
        schema: JsonObject,
        *,
        judged_by: JsonObject,
        domain: str,
        tenant_id: TenantId,
        user_id: UserId | None,
        session_id: SessionId,
        run_id: str,
        model: str | None = None,
    ) -> JsonObject | None:
        """Ask for an answer that fits the schema; None when no model is configured or can be asked now.

        Args:
            prompt_id: of the prompts that ship; `variables` are its data and settings, except
                ``assistant``, which the domain's configuration gives.
            variables: see `prompt_id`.
            schema: JSON Schema of an object, as sent to the model.
            judged_by: the schema that the answer must match.
            domain: whose models are asked.
            tenant_id: for whom; budgets of the tenant, the user and the session count.
            user_id: the session's user.
            session_id: the session.
            run_id: named to the endpoint in place of a turn.
            model: asked in place of the domain's, as the options of a run name it.

        Raises:
            ModelUnavailable, ModelOutputInvalid, BudgetExceeded: there is no usable answer.
            ConfigurationError: the domain cannot be used.
        """
        if not self._models.configured:
            return None
        config = self._configure(domain)
        if model is not None:
            chosen = {"default": ModelName(model=model), "per_prompt": {}}
            config = config.model_copy(update={"models": config.models.model_copy(update=chosen)})
        engineer = self._models.engineer(config)
        if engineer is None or not engineer.can_answer(prompt_id):
            return None
        call = CallContext(
            session_id=session_id,
            tenant_id=tenant_id,
            user_id=user_id,
            turn_id=TurnId(run_id),
            deadline=time.monotonic() + WITHIN_S,
        )
        assistant = config.description or config.persona.name
        question = {**variables, "assistant": assistant}
        return await engineer.structured(prompt_id, question, schema, call, judged_by=judged_by)
