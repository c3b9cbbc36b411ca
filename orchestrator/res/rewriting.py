"""What a model wrote as part of a message: no markup but its paragraphs and list items (RS-7)."""

from __future__ import annotations

import re

from orchestrator.res.escape import escape_value

_LIST = re.compile(r"^\s*(?:[-*+|>#]|\d+[.)])\s|^```", re.MULTILINE)
_ITEM = re.compile(r"(?:[-*]|\d+[.)])\s+")


def is_list(text: str) -> bool:
    """Whether a paragraph holds a list or the like, which is left as it is."""
    return _LIST.search(text) is not None


def escape_rewriting(text: str) -> str:
    """The text as a part of a message."""
    return "\n".join(_escape_line(line.strip()) for line in text.splitlines())


def _escape_line(line: str) -> str:
    item = _ITEM.match(line)
    if item is None:
        return str(escape_value(line))
    return item[0] + str(escape_value(line[item.end() :]))
