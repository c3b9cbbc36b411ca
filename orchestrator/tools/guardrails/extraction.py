"""Finds the code in what a model wrote: fences, delimited blocks, prose around.

Nothing is judged here but whether there is code at all, and whether it is what it looks like;
what is left out is never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import assert_never

from orchestrator.tools.guardrails.python_code import PythonRules, check_python
from orchestrator.tools.guardrails.sql import SqlRules, check_sql
from orchestrator.tools.guardrails.verdict import Category, Entities, Language, Rejected, Verdict

MAX_TEXT_CHARACTERS = 100_000
"""Of a model's whole answer; the code in it is bounded by its own rules."""

_FENCE = re.compile(
    r"^[ \t]*+(`{3,}+|~{3,}+)[ \t]*+([\w+-]*+)[^\n]*+\n(.*?)(?:^[ \t]*+\1[ \t]*+$|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""Nothing in it is tried in a second way: a long answer cannot keep the process busy."""
_HIDDEN = re.compile(
    "[\u0000-\u0008\u000b\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_PYTHON_START = re.compile(r"^(?:(?:async\s+)?def|import|from|@|class)\b|^@", re.MULTILINE)
_SQL_START = re.compile(
    r"^\s*(?:select|with|from|values|insert|update|delete|create|describe|summarize)\b", re.IGNORECASE
)
_PARAGRAPH = re.compile(r"\n[ \t]*\n(?=[A-Z][a-z]*[ ,:'’])")
_SQL_WORD_LIST = """
SELECT FROM WHERE GROUP HAVING ORDER LIMIT UNION INTERSECT EXCEPT JOIN LEFT RIGHT INNER ON WITH AND OR
WINDOW QUALIFY INSERT UPDATE DELETE DROP CREATE ALTER ATTACH COPY PRAGMA SET CALL LOAD INSTALL EXPORT VALUES"""
_SQL_WORDS = frozenset(_SQL_WORD_LIST.split())
_LABELS = {
    Language.PYTHON: frozenset({"python", "py", "python3"}),
    Language.SQL: frozenset({"sql", "duckdb"}),
}


def extract_code(raw: str, language: Language) -> str | Rejected:
    """The code in a model's answer: the first fenced block of the language, else what is no prose."""
    if len(raw) > MAX_TEXT_CHARACTERS:
        return Rejected(Category.TOO_LARGE, f"The answer has more than {MAX_TEXT_CHARACTERS} characters.")
    text = raw.replace("\r\n", "\n").replace("\r", "\n")
    code = _first_fence(text, language)
    if code is None:
        code = _strip_prose(text, language)
    if not code.strip():
        return Rejected(Category.EMPTY, f"There is no {language} code. Put it into one fenced block.")
    hidden = _HIDDEN.search(code)
    if hidden:
        return Rejected(
            Category.HIDDEN_CHARACTERS,
            f"The code holds the invisible character U+{ord(hidden[0]):04X}. Write it with visible characters only.",
        )
    return code.strip("\n")


def activate_guardrails(raw_code: str, trigger_phrase: str) -> tuple[str, ...]:
    """The blocks that a trigger phrase opens in an answer of prose and code, in order.

    A phrase such as ``<sql>`` is closed by ``</sql>``, one that starts with backquotes by as many
    backquotes. After any other phrase the next fenced block is meant, or without one the text up to
    the next occurrence of the phrase. Empty when the phrase does not occur.
    """
    if not trigger_phrase.strip():
        return ()
    text = raw_code[:MAX_TEXT_CHARACTERS].replace("\r\n", "\n")
    closing = _closing_of(trigger_phrase.strip())
    return tuple(block for block in _blocks(text, trigger_phrase, closing) if block.strip())


def _closing_of(phrase: str) -> str | None:
    tag = re.fullmatch(r"<([A-Za-z][\w-]*)(?:\s[^>]*)?>", phrase)
    if tag:
        return f"</{tag[1]}>"
    fence = re.match(r"(`{3,}|~{3,})", phrase)
    return fence[1] if fence else None


def _blocks(text: str, phrase: str, closing: str | None) -> Iterator[str]:
    pieces = text.split(phrase)[1:]
    for piece in pieces:
        if closing is not None:
            yield piece.split(closing, 1)[0].strip("\n")
            continue
        fence = _FENCE.search(piece)
        yield (fence[3] if fence else piece).strip("\n")


def _first_fence(text: str, language: Language) -> str | None:
    blocks = [(match[2].lower(), match[3]) for match in _FENCE.finditer(text)]
    labelled = (code for label, code in blocks if label in _LABELS[language])
    unlabelled = (code for label, code in blocks if not label)
    return next(labelled, None) or next(unlabelled, None) or (blocks[0][1] if blocks else None)


def _strip_prose(text: str, language: Language) -> str:
    if language is Language.PYTHON:
        return _python_of(text)
    return _sql_of(text)


def _python_of(text: str) -> str:
    """From the first line that starts like Python; up to the last paragraph with which it parses."""
    start = _PYTHON_START.search(text)
    if start is None or _parses(text):
        return text
    code = text[start.start() :]
    return next((part for part in _shortened(code) if _parses(part)), code)


def _sql_of(text: str) -> str:
    """From the first line that starts like SQL; up to the first paragraph that starts like a sentence."""
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines) if _SQL_START.match(line)), None)
    if start is None or not lines[0].strip().rstrip(":").count(" "):
        return text
    if _looks_like_code(lines[0]):
        start = 0
    code = "\n".join(lines[start:])
    for gap in _PARAGRAPH.finditer(code):
        word = re.match(r"\w+", code[gap.end() :])
        if word and word[0].upper() not in _SQL_WORDS:
            return code[: gap.start()]
    return code


def _looks_like_code(line: str) -> bool:
    word = re.match(r"\s*[(/-]*\s*(\w+)", line)
    return word is not None and word[1].upper() in _SQL_WORDS


def _shortened(code: str) -> Iterable[str]:
    """The code, then without its last paragraphs, one more each time, at most twenty."""
    yield code
    gaps = [match.start() for match in re.finditer(r"\n[ \t]*\n", code)]
    for gap in reversed(gaps[-20:]):
        yield code[:gap]


def _parses(text: str) -> bool:
    if len(text) > 20_000:
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


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
