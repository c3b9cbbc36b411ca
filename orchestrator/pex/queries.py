"""Repair a query that failed or found nothing (AG-6, tier 1).

A cheap fix comes first, then a model's replacement. Each replacement is subject to the same guardrails,
labels and limits as the first query. `resilience.repair_attempts` limits the number of repairs per execution
of a flow.
"""

from __future__ import annotations

from orchestrator.models.schemas import bounded_text, closed, loose
from orchestrator.pex.calls.guarded_call import call_guarded
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution, Query
from orchestrator.pex.frames import ask_model, find_rows
from orchestrator.saying import Told, say
from orchestrator.tools.guardrails.verdict import RejectedCode
from orchestrator.tools.toolbox import ToolData
from orchestrator.types import Json, JsonObject, is_list

NOTHING_FOUND = "it found no rows"

PROMPT = "pex_requery"
LONGEST_STATEMENT = 8000  # characters
LONGEST_REASON = 200  # characters
_STATEMENT: JsonObject = {"type": ["string", "null"], "maxLength": LONGEST_STATEMENT}
SCHEMA = loose(["statement"], statement=_STATEMENT, change=bounded_text(LONGEST_REASON))


def requery_schema() -> JsonObject:
    return closed(statement=_STATEMENT, change=bounded_text(LONGEST_REASON))


async def repair_query(run: Execution, policy: Choices, *, failed: str | None = None) -> bool:
    """Replace the query until it returns rows. If that fails, return False and leave the results unchanged.

    `failed`: why the flow failed, or None if it has results. If something other than the query caused the
    failure, the query is not repaired.
    """
    query = run.query
    if query is None or not (fault := _find_fault(run, query)) or (failed is not None and not query.fault):
        return False
    before, answers, tried = run.data, run.answers, list[JsonObject]()
    while fault is not None and query is not None and run.begin_repair():
        written = await _rewrite(run, policy, query, fault, tried)
        if written is None:
            break
        statement, how, told = written
        tried.append({"statement": query.statement, "fault": fault})
        run.data, run.answers = dict(before), [*answers]
        arguments = {**query.arguments, query.name: statement}
        answer = await call_guarded(run, policy, query.tool, arguments, None)
        run.note_repair(how, fault)
        if isinstance(answer, RejectedCode) and run.query is None:  # forbidden: the model receives the reason
            run.query = Query(query.tool, arguments, query.name, answer.message)
        query = run.query
        fault = None if query is None else _find_fault(run, query)
        if fault is None and isinstance(answer, ToolData):
            run.data, run.repaired = _drop_stale(run, before, answer.data), told
            return True
    run.data, run.answers = before, answers
    return False


def _find_fault(run: Execution, query: Query) -> str | None:
    """Return why a query could not run, or that it found no rows, or None."""
    if query.fault is not None:
        return query.fault
    latest = run.returned[-1] if run.returned else {}
    lists = [value for value in latest.values() if is_list(value)]
    return NOTHING_FOUND if [] in lists and find_rows(latest) is None else None


async def _rewrite(
    run: Execution, policy: Choices, query: Query, fault: str, tried: list[JsonObject]
) -> tuple[str, str, Told] | None:
    """Return another statement, the kind of repair and a message for the user, or None if there is no repair.

    `tried`: earlier statements, each with its fault.
    """
    if query.unknown is not None and query.nearest is not None:
        # Imported here because the parser is large, and few domains use model-written SQL.
        from orchestrator.tools.guardrails.sql import rename_in_sql  # noqa: PLC0415

        statement = rename_in_sql(query.statement, query.unknown, query.nearest)
        if statement != query.statement and all(one["statement"] != statement for one in tried):
            told = say("query_corrected", name=query.unknown, nearest=query.nearest)
            return statement, "correct_name", told
    if policy.engineer is None:
        return None
    variables: dict[str, Json] = {
        "task": run.flow.spec.description or run.flow.title,
        "tool": query.tool.spec.description or query.tool.spec.name,
        "utterance": run.context.text,
        "slots": run.flow.values(),
        "known": policy.knowledge(run),
        "statement": query.statement,
        "fault": fault,
        "tried": tried,
    }
    answer = await ask_model(run, policy.engineer, PROMPT, variables, requery_schema(), SCHEMA)
    statement = str(answer["statement"] or "").strip() if answer is not None else ""
    if answer is None or not statement:
        return None  # the model keeps the query or does not answer
    change = str(answer.get("change") or "").strip()
    is_sound = change and policy.find_fault_in_text(run, change) is None
    told = say("query_replaced", failed=query.fault is not None, change=change if is_sound else "")
    return statement, "requery", told


def _drop_stale(run: Execution, before: JsonObject, found: JsonObject) -> JsonObject:
    """Merge the new query's results into the earlier results, without the skill's outputs about the old query."""
    skill = run.context.world.domain.skills.get(run.flow.spec.dact) if run.by_skill else None
    stale = set[str]() if skill is None else set((skill.result or {}).get("properties", {}))
    return {**{name: value for name, value in before.items() if name not in stale}, **found}
