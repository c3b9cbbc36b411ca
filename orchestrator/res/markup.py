"""The format of a `message`, and its conversion to plain text (RS-7).

A message uses a small subset of Markdown: paragraphs, line breaks, lists (``- `` and ``1. ``), and backslash
escapes. Clients show links, images, emphasis, headings, tables and HTML as plain text.
"""

import re

_BACKSLASH = re.compile(r"\\([\\`*_{}\[\]()#+\-.!<>~|\d])")


def to_plain(message: str) -> str:
    """Convert a message to plain text. Lists keep their markers."""
    return _BACKSLASH.sub(r"\1", message)
