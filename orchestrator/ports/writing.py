"""What Internal flows may ask of a model: one structured answer to a named prompt, outside any turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from orchestrator.types import Json, JsonObject, SessionId


class Writer(Protocol):
    """A model for one question of an Internal flow."""

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
        """The answer, which fits the schema; None when no model is configured or can be asked now.

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
        """
        ...


class Triggers(Protocol):
    """How code that is no Internal flow starts some."""

    async def start(self, trigger: str, tenant_id: str, session_id: SessionId, *, key: str) -> None:
        """Start the flows of a trigger for a session; once per `key`, and one of each at a time."""
        ...
