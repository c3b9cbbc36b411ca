"""The guardrails as one call: find the code in an answer and judge it by its language."""

from __future__ import annotations

from typing import assert_never

from orchestrator.pex.guardrails.extraction import extract_code
from orchestrator.pex.guardrails.python_code import PythonRules, check_python
from orchestrator.pex.guardrails.sql import SqlRules, check_sql
from orchestrator.pex.guardrails.verdict import Entities, Language, Rejected, Verdict

DEFAULT_PYTHON = PythonRules()
DEFAULT_SQL = SqlRules()


def apply_guardrails(
    raw_code: str,
    language: Language,
    valid_entities: Entities | None,
    *,
    python: PythonRules = DEFAULT_PYTHON,
    sql: SqlRules = DEFAULT_SQL,
) -> Verdict:
    """Judge the code in a model's answer (PX-10).

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
    match language:
        case Language.PYTHON:
            return check_python(code, valid_entities, python)
        case Language.SQL:
            return check_sql(code, valid_entities, sql)
        case _:
            assert_never(language)
