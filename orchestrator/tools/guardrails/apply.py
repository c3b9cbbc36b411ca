"""Judges code that a model wrote, and runs its Python: the one way from an answer to a result (PX-10)."""

from __future__ import annotations

from orchestrator.domain.guarding import Language
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.ports.sandbox import Returned, Sandbox, SandboxLimits, SandboxResult, StopCategory, Stopped
from orchestrator.tools.guardrails.extraction import extract_code
from orchestrator.tools.guardrails.python_code import PythonRules, check_python
from orchestrator.tools.guardrails.sql import SqlRules, check_sql
from orchestrator.tools.guardrails.verdict import Entities, GuardrailVerdict, Rejected
from orchestrator.types import Json, JsonObject

DEFAULT_PYTHON = PythonRules()
DEFAULT_SQL = SqlRules()
DEFAULT_LIMITS = SandboxLimits()


def apply_guardrails(
    raw_code: str,
    language: Language,
    valid_entities: Entities | None,
    *,
    python: PythonRules = DEFAULT_PYTHON,
    sql: SqlRules = DEFAULT_SQL,
) -> GuardrailVerdict:
    """Judge the code in a model's answer.

    Args:
        raw_code: code, with or without fences and prose around it.
        language: what it must be.
        valid_entities: tables with their columns; None leaves names unchecked, {} allows none.
        python: the rules of the domain.
        sql: the rules of the tool.

    Returns:
        Approved code, written anew: only that text may be run. Or why it is rejected, in a
        sentence for the model.
    """
    code = extract_code(raw_code, language)
    if isinstance(code, Rejected):
        return code
    if language is Language.PYTHON:
        return check_python(code, valid_entities, python)
    return check_sql(code, valid_entities, sql)


async def run_guarded(
    raw_code: str,
    arguments: JsonObject,
    sandbox: Sandbox,
    *,
    rules: PythonRules = DEFAULT_PYTHON,
    limits: SandboxLimits = DEFAULT_LIMITS,
) -> SandboxResult | Rejected:
    """Find the function in a model's answer, judge it, and call it with keyword arguments in the sandbox."""
    code = extract_code(raw_code, Language.PYTHON)
    if isinstance(code, Rejected):
        return code
    approved = check_python(code, None, rules)
    if isinstance(approved, Rejected):
        return approved
    return await sandbox.run_python(approved.code, arguments, limits, imports=approved.imports)


# Every other stop is the code's own fault.
FAILURES = {
    StopCategory.TIMEOUT: FailureCategory.TIMEOUT,
    StopCategory.UNAVAILABLE: FailureCategory.SERVER_ERROR,
}


class GuardedPython:
    """Run Python that a model wrote, for services: the guardrails, then the sandbox."""

    def __init__(self, sandbox: Sandbox, rules: PythonRules, limits: SandboxLimits = DEFAULT_LIMITS) -> None:
        self._sandbox = sandbox
        self._rules = rules
        self._limits = limits

    async def run(self, code: str, arguments: JsonObject) -> Json:
        """See `PythonRunner`."""
        match await run_guarded(code, arguments, self._sandbox, rules=self._rules, limits=self._limits):
            case Returned(value):
                return value
            case Rejected(category, message):
                raise ToolFailure(FailureCategory.VALIDATION_ERROR, f"{category.value}: {message}")
            case Stopped(category, message):
                failure = FAILURES.get(category, FailureCategory.VALIDATION_ERROR)
                raise ToolFailure(failure, f"{category.value}: {message}")
