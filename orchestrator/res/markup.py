"""What a `message` is, and how it becomes plain text (RS-7).

A message is text in a small part of Markdown: paragraphs, line breaks, lists (``- `` and ``1. ``), and
a backslash before a character that is meant as it is. There are no links, images, emphasis, headings,
tables or HTML: whatever looks like them is text.
"""

import re

_BACKSLASH = re.compile(r"\\([\\`*_{}\[\]()#+\-.!<>~|\d])")


def unescape(text: str) -> str:
    """Take out the backslashes that kept text from being markup."""
    return _BACKSLASH.sub(r"\1", text)


def to_plain(message: str) -> str:
    """Write the message for a place that knows no markup, such as a terminal: lists keep their marks."""
    return unescape(message)
