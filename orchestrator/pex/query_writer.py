"""Ask a model to replace a query that failed or found nothing (AG-6, tier 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.models.engineer import PromptEngineer
from orchestrator.models.schemas import bounded_text, closed
from orchestrator.pex.execution import Execution, Query
from orchestrator.ports.language_model import MODEL_FAILURES
from orchestrator.types import Json, JsonObject

PROMPT = "pex_requery"
LONGEST_STATEMENT = 8000  # characters
LONGEST_REASON = 200  # characters
SCHEMA: JsonObject = {
    "type": "object",
    "required": ["statement"],
    "properties": {
        "statement": {"type": ["string", "null"], "maxLength": LONGEST_STATEMENT},
        "change": {"type": "string", "maxLength": LONGEST_REASON},
    },
}


def requery_schema() -> JsonObject:
    return closed(
        statement={"type": ["string", "null"], "maxLength": LONGEST_STATEMENT},
        change=bounded_text(LONGEST_REASON),
    )


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A replacement for a query. `change`: the difference, as text for the user."""

    statement: str
    change: str


class QueryWriter:
    """A client that asks a model for replacement queries.

    The guardrails check these queries like any other code.
    """

    def __init__(self, engineer: PromptEngineer) -> None:
        self._engineer = engineer

    async def rewrite(
        self, run: Execution, query: Query, fault: str, tried: Sequence[JsonObject], known: JsonObject
    ) -> Rewritten | None:
        """Request another query. Return None if the model keeps the query or does not answer.

        `tried`: earlier statements, each with its fault. `known`: facts from the policy, such as the
        tables that can be read.
        """
        if not self._engineer.can_answer(PROMPT):
            return None
        variables: dict[str, Json] = {
            "task": run.flow.spec.description or run.flow.title,
            "tool": query.tool.spec.description or query.tool.spec.name,
            "utterance": run.context.text,
            "slots": run.flow.values(),
            "known": known,
            "statement": query.statement,
            "fault": fault,
            "tried": list(tried),
        }
        try:
            call = run.context.call.for_flow(run.flow.flow_id)
            answer = await self._engineer.structured(
                PROMPT, variables, requery_schema(), call, judged_by=SCHEMA
            )
        except MODEL_FAILURES as error:
            run.context.log.failed_check("pex", "requery", f"{error.code}: {error}", run.flow.flow_id)
            return None
        statement = str(answer["statement"] or "").strip()
        return Rewritten(statement, str(answer.get("change") or "").strip()) if statement else None
