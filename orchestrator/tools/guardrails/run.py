"""The one way from a model's Python to its result: judged first, then run elsewhere."""

from __future__ import annotations

from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.ports.sandbox import Returned, Sandbox, SandboxLimits, SandboxResult, StopCategory, Stopped
from orchestrator.tools.guardrails.extraction import DEFAULT_PYTHON, extract_code
from orchestrator.tools.guardrails.python_code import PythonRules, check_python
from orchestrator.tools.guardrails.verdict import Entities, Language, Rejected
from orchestrator.types import Json, JsonObject

DEFAULT_LIMITS = SandboxLimits()


async def run_guarded(
    raw_code: str,
    arguments: JsonObject,
    sandbox: Sandbox,
    *,
    valid_entities: Entities | None = None,
    rules: PythonRules = DEFAULT_PYTHON,
    limits: SandboxLimits = DEFAULT_LIMITS,
) -> SandboxResult | Rejected:
    """Find the function in a model's answer, judge it, and call it with keyword arguments in the sandbox."""
    code = extract_code(raw_code, Language.PYTHON)
    if isinstance(code, Rejected):
        return code
    approved = check_python(code, valid_entities, rules)
    if isinstance(approved, Rejected):
        return approved
    return await sandbox.run_python(approved.code, arguments, limits, imports=approved.imports)


FAILURES = {
    StopCategory.TIMEOUT: FailureCategory.TIMEOUT,
    StopCategory.UNAVAILABLE: FailureCategory.SERVER_ERROR,
}
"""Every other stop is the code's own fault."""


class GuardedPython:
    """What services are given to run Python that a model wrote: the guardrails, then the sandbox."""

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
