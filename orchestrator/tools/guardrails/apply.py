"""Check and run model-written code. No other module runs code from a model's answer (PX-10)."""

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.domain.guarding import READ_ONLY, Language, Statement
from orchestrator.domain.services import QueryRows, Table
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.ports.sandbox import Sandbox, SqlSandbox, StopCategory, Stopped
from orchestrator.saying import say
from orchestrator.tools.guardrails.extraction import extract_code
from orchestrator.tools.guardrails.python_code import check_python
from orchestrator.tools.guardrails.verdict import ApprovedCode, Entities, RejectedCode
from orchestrator.types import Json, JsonObject


def apply_guardrails(
    raw_code: str,
    language: Language,
    valid_entities: Entities | None,
    *,
    allowed_imports: tuple[str, ...] = (),
    statements: frozenset[Statement] = READ_ONLY,
) -> ApprovedCode | RejectedCode:
    """Check the code in a model's answer.

    Args:
        raw_code: code, possibly with fences and prose.
        language: the required language.
        valid_entities: tables with their columns. None skips this check; {} allows no tables.
        allowed_imports: modules that Python code can import.
        statements: permitted kinds of SQL statements.

    Returns:
        The regenerated code, which is the only text that may run, or a rejection with a message for the
        model.
    """
    code = extract_code(raw_code, language)
    if isinstance(code, RejectedCode):
        return code
    if language is Language.PYTHON:
        return check_python(code, valid_entities, allowed_imports)
    # Imported here because the parser is large, and few domains use model-written SQL.
    from orchestrator.tools.guardrails.sql import check_sql  # noqa: PLC0415

    return check_sql(code, valid_entities, statements)


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

    def __init__(self, sandbox: Sandbox, allowed_imports: tuple[str, ...]) -> None:
        self._sandbox = sandbox
        self._allowed_imports = allowed_imports

    async def run(self, code: str, arguments: JsonObject) -> Json:
        approved = apply_guardrails(code, Language.PYTHON, None, allowed_imports=self._allowed_imports)
        if isinstance(approved, RejectedCode):
            raise _failure(approved)
        result = await self._sandbox.run_python(approved.code, arguments, imports=approved.imports)
        if isinstance(result, Stopped):
            raise _failure(result)
        return result.value


class GuardedSql:
    """A service's runner for model-written SQL: guardrails, then a process with copies of the tables."""

    def __init__(self, sandbox: SqlSandbox) -> None:
        self._sandbox = sandbox

    async def run(self, code: str, tables: Mapping[str, Table]) -> QueryRows:
        entities = {name: [column for column, _ in table.columns] for name, table in tables.items()}
        approved = apply_guardrails(code, Language.SQL, entities)
        if isinstance(approved, RejectedCode):
            raise _failure(approved)
        result = await self._sandbox.run_sql(approved.code, tables)
        if isinstance(result, Stopped):
            raise _failure(result)
        return replace(result, code=approved.code)
