"""Guardrails for code that a model wrote (PX-10): pure checks before anything runs."""

from orchestrator.pex.guardrails.apply import apply_guardrails
from orchestrator.pex.guardrails.extraction import activate_guardrails, extract_code
from orchestrator.pex.guardrails.python_code import PythonRules, check_python
from orchestrator.pex.guardrails.run import run_guarded
from orchestrator.pex.guardrails.sql import READ_ONLY, SqlRules, check_sql, database_settings
from orchestrator.pex.guardrails.verdict import (
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
