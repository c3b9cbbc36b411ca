"""Extract the code from a model's answer, without fences and prose.

Extraction rejects only answers that are too long, or whose code is missing or has invisible characters.
"""

import ast
import re
from collections.abc import Iterable

from orchestrator.domain.guarding import Language
from orchestrator.tools.guardrails.verdict import Category, RejectedCode

MAX_TEXT_CHARACTERS = 100_000  # the limit for a whole answer; code has separate limits

_FENCE = re.compile(
    r"^[ \t]*+(`{3,}+|~{3,}+)[ \t]*+([\w+-]*+)[^\n]*+\n(.*?)(?:^[ \t]*+\1[ \t]*+$|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""A fenced code block. Possessive quantifiers avoid backtracking, so a long answer cannot block the process."""
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


def extract_code(raw: str, language: Language) -> str | RejectedCode:
    """Return the code from an answer, or a rejection.

    The code is a fenced block or, without fences, the text without surrounding prose. A block labeled with
    the language takes precedence over an unlabeled block, and both over other blocks.
    """
    if len(raw) > MAX_TEXT_CHARACTERS:
        return RejectedCode(Category.TOO_LARGE, f"The answer has more than {MAX_TEXT_CHARACTERS} characters.")
    text = raw.replace("\r\n", "\n").replace("\r", "\n")
    code = _first_fence(text, language)
    if code is None:
        code = _strip_prose(text, language)
    if not code.strip():
        return RejectedCode(
            Category.EMPTY, f"The answer contains no {language} code. Put it into one fenced block."
        )
    hidden = _HIDDEN.search(code)
    if hidden:
        return RejectedCode(
            Category.HIDDEN_CHARACTERS,
            f"The code contains the invisible character U+{ord(hidden[0]):04X}. Write it with visible characters only.",
        )
    return code.strip("\n")


def _first_fence(text: str, language: Language) -> str | None:
    blocks = [(match[2].lower(), match[3]) for match in _FENCE.finditer(text)]
    labeled = (code for label, code in blocks if label in _LABELS[language])
    unlabeled = (code for label, code in blocks if not label)
    return next(labeled, None) or next(unlabeled, None) or (blocks[0][1] if blocks else None)


def _strip_prose(text: str, language: Language) -> str:
    if language is Language.PYTHON:
        return _python_of(text)
    return _sql_of(text)


def _python_of(text: str) -> str:
    """Return the text from the first line that looks like Python, without final paragraphs that prevent parsing."""
    start = _PYTHON_START.search(text)
    if start is None or _parses(text):
        return text
    code = text[start.start() :]
    return next((part for part in _shortened(code) if _parses(part)), code)


def _sql_of(text: str) -> str:
    """Return the text from the first line of SQL to the first paragraph that looks like prose."""
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
    """Yield the code, then up to twenty shorter versions without its last paragraphs."""
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
