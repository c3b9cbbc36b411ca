"""Guardrails for code that a model wrote (PX-10): pure checks before anything runs."""

from orchestrator.tools.guardrails.extraction import activate_guardrails, apply_guardrails, extract_code
from orchestrator.tools.guardrails.python_code import PythonRules, check_python
from orchestrator.tools.guardrails.run import GuardedPython, run_guarded
from orchestrator.tools.guardrails.sql import READ_ONLY, SqlRules, check_sql, database_settings
from orchestrator.tools.guardrails.verdict import (
    ApprovedPython,
    ApprovedSql,
    Category,
    Entities,
    Language,
    Rejected,
    Statement,
    Verdict,
)

__all__ = [
    "READ_ONLY",
    "ApprovedPython",
    "ApprovedSql",
    "Category",
    "Entities",
    "GuardedPython",
    "Language",
    "PythonRules",
    "Rejected",
    "SqlRules",
    "Statement",
    "Verdict",
    "activate_guardrails",
    "apply_guardrails",
    "check_python",
    "check_sql",
    "database_settings",
    "extract_code",
    "run_guarded",
]
