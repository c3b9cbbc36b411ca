"""The tool that calls language models for background flows."""

import time
from collections.abc import Callable, Mapping

from orchestrator.adapters.models.pool import ModelPool
from orchestrator.domain.configuration import DomainConfig, ModelName
from orchestrator.models.calling import CallContext
from orchestrator.types import Json, JsonObject, SessionId, TenantId, TurnId, UserId

WITHIN_S = 60.0


class ModelWriter:
    """The tool `writer` for background flows, which answers a prompt with structured output."""

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
        """Return an answer that matches `judged_by`, or None if no configured model can answer the prompt.

        Args:
            prompt_id: ID of a built-in prompt.
            variables: data and settings for the prompt. The domain's configuration adds ``assistant``.
            schema: JSON Schema of an object, as sent to the model.
            judged_by: JSON Schema that the answer must match.
            domain: domain whose models are used.
            tenant_id: tenant whose budget is charged. The user's and the session's budgets are charged too.
            user_id: the session's user, or None if unknown.
            session_id: session that the answer is for.
            run_id: run ID, sent to the model's endpoint instead of a turn ID.
            model: model name from the run's options. Default: the domain's model.

        Raises:
            ModelUnavailable, ModelOutputInvalid: the model returned no usable answer.
            BudgetExceeded: a budget is used up.
            ConfigurationError: the domain's configuration is invalid.
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
