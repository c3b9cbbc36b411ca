"""The one way from a model's Python to its result: judged first, then run elsewhere."""

from __future__ import annotations

from orchestrator.pex.guardrails.apply import DEFAULT_PYTHON
from orchestrator.pex.guardrails.extraction import extract_code
from orchestrator.pex.guardrails.python_code import PythonRules, check_python
from orchestrator.pex.guardrails.verdict import Entities, Language, Rejected
from orchestrator.ports.sandbox import Sandbox, SandboxLimits, SandboxResult
from orchestrator.types import JsonObject

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
