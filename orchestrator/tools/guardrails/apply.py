"""Check and run model-written code. No other module runs code from a model's answer (PX-10)."""

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.domain.guarding import Language
from orchestrator.domain.services import QueryRows, Table
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.ports.sandbox import (
    QueryLimits,
    Returned,
    Sandbox,
    SandboxLimits,
    SandboxResult,
    SqlSandbox,
    StopCategory,
    Stopped,
)
from orchestrator.saying import say
from orchestrator.tools.guardrails.extraction import extract_code
from orchestrator.tools.guardrails.python_code import PythonRules, check_python
from orchestrator.tools.guardrails.verdict import Entities, GuardrailVerdict, RejectedCode, SqlRules
from orchestrator.types import Json, JsonObject

DEFAULT_PYTHON = PythonRules()
DEFAULT_SQL = SqlRules()
DEFAULT_LIMITS = SandboxLimits()
DEFAULT_QUERY_LIMITS = QueryLimits()


def apply_guardrails(
    raw_code: str,
    language: Language,
    valid_entities: Entities | None,
    *,
    python: PythonRules = DEFAULT_PYTHON,
    sql: SqlRules = DEFAULT_SQL,
) -> GuardrailVerdict:
    """Check the code in a model's answer.

    Args:
        raw_code: code, possibly with fences and prose.
        language: the required language.
        valid_entities: tables with their columns. None skips this check; {} allows no tables.
        python: the domain's rules for Python.
        sql: the tool's rules for SQL.

    Returns:
        The regenerated code, which is the only text that may run, or a rejection with a message for the
        model.
    """
    code = extract_code(raw_code, language)
    if isinstance(code, RejectedCode):
        return code
    if language is Language.PYTHON:
        return check_python(code, valid_entities, python)
    # Imported here because the parser is large, and few domains use model-written SQL.
    from orchestrator.tools.guardrails.sql import check_sql  # noqa: PLC0415

    return check_sql(code, valid_entities, sql)


async def run_guarded(
    raw_code: str,
    arguments: JsonObject,
    sandbox: Sandbox,
    *,
    rules: PythonRules = DEFAULT_PYTHON,
    limits: SandboxLimits = DEFAULT_LIMITS,
) -> SandboxResult | RejectedCode:
    """Extract and check the function in a model's answer, and call it in the sandbox with keyword arguments."""
    code = extract_code(raw_code, Language.PYTHON)
    if isinstance(code, RejectedCode):
        return code
    approved = check_python(code, None, rules)
    if isinstance(approved, RejectedCode):
        return approved
    return await sandbox.run_python(approved.code, arguments, limits, imports=approved.imports)


# Any other reason to stop is the code's fault, and becomes a VALIDATION_ERROR.
FAILURES = {
    StopCategory.TIMEOUT: FailureCategory.TIMEOUT,
    StopCategory.UNAVAILABLE: FailureCategory.SERVER_ERROR,
}


def _failure(why: RejectedCode | Stopped) -> ToolFailure:
    if isinstance(why, RejectedCode):
        return ToolFailure(FailureCategory.VALIDATION_ERROR, why.tell())
    told = say("code_stopped", why=why.category.value).with_detail(f"{why.category.value}: {why.message}")
    return ToolFailure(FAILURES.get(why.category, FailureCategory.VALIDATION_ERROR), told)


class GuardedPython:
    """A service's runner for model-written Python: guardrails first, then the sandbox."""

    def __init__(self, sandbox: Sandbox, rules: PythonRules, limits: SandboxLimits = DEFAULT_LIMITS) -> None:
        self._sandbox = sandbox
        self._rules = rules
        self._limits = limits

    async def run(self, code: str, arguments: JsonObject) -> Json:
        result = await run_guarded(code, arguments, self._sandbox, rules=self._rules, limits=self._limits)
        if isinstance(result, Returned):
            return result.value
        raise _failure(result)


class GuardedSql:
    """A service's runner for model-written SQL: guardrails, then a process with copies of the tables."""

    def __init__(self, sandbox: SqlSandbox, limits: QueryLimits = DEFAULT_QUERY_LIMITS) -> None:
        self._sandbox = sandbox
        self._limits = limits

    async def run(self, code: str, tables: Mapping[str, Table]) -> QueryRows:
        entities = {name: [column for column, _ in table.columns] for name, table in tables.items()}
        approved = apply_guardrails(code, Language.SQL, entities)
        if isinstance(approved, RejectedCode):
            raise _failure(approved)
        result = await self._sandbox.run_sql(approved.code, tables, self._limits)
        if isinstance(result, Stopped):
            raise _failure(result)
        return replace(result, code=approved.code)
