"""Makes values that came from users, tools or models harmless in Markdown (RS-7).

Only what could become markup is touched, so that ordinary names and references read as they are.
"""

from __future__ import annotations

import re

from markupsafe import Markup

from orchestrator.types import Json

INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
"""Control characters and those that change the direction of text or hide in it."""

ACTIVE = re.compile(
    r"[\\`*\[\]<>]|(?<!\w)_|_(?!\w)|^(?=#{1,6}\s|[+\-]\s|\d+[.)]\s|---|~~~|\|)|\n",
)


def escape_value(value: Json | Markup) -> Markup:
    """The value as text that no renderer takes for markup; line ends become spaces."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return Markup("")
    text = value if isinstance(value, str) else str(value)
    if INVISIBLE.search(text):
        text = INVISIBLE.sub("", text)
    if ACTIVE.search(text):
        text = ACTIVE.sub(_disarm, text)
    return Markup(text)  # noqa: S704 - it has just been escaped for Markdown


def _disarm(found: re.Match[str]) -> str:
    return " " if found[0] == "\n" else "\\" + found[0]
