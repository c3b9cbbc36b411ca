"""Guardrails on the way to a tool: inputs that take code get only what was judged and written anew (PX-10)."""

from __future__ import annotations

from orchestrator.pex.execution import Execution
from orchestrator.pex.guardrails import Entities, Rejected, SqlRules, apply_guardrails
from orchestrator.pex.toolbox import Tool
from orchestrator.types import JsonObject


def guard_arguments(
    run: Execution, tool: Tool, arguments: JsonObject, entities: Entities | None
) -> JsonObject | Rejected:
    """The arguments with approved code in place of what was written, or the first rejection."""
    guarded = dict(arguments)
    for one in tool.guarded:
        code = arguments.get(one.name)
        if not isinstance(code, str):
            continue
        verdict = apply_guardrails(
            code,
            one.language,
            entities,
            python=run.tools.python_rules,
            sql=SqlRules(statements=one.statements),
        )
        if isinstance(verdict, Rejected):
            why = f"{verdict.category.value}: {verdict.message}"
            run.world.failed_check("pex", "guardrail", why, run.flow.flow_id)
            return verdict
        guarded[one.name] = verdict.code
    return guarded
