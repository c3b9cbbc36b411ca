"""Answers to an open question of a task about tables: a column, a condition, values, a name."""

from __future__ import annotations

from domains.analytics.wording.request import Request
from domains.analytics.wording.shaping import read_pairs
from orchestrator.domain.reading import Mention, Read


def answer(asked: Request) -> Read | None:
    """Read a message as the answer to what was asked; None when it is none."""
    heard = asked.heard
    if heard.asked is None or heard.active is None:
        return None
    if heard.asked == "values" and (pairs := read_pairs(asked)):
        return Read(heard.active, {"values": Mention(pairs, heard.text)})
    if heard.asked == "condition":
        condition = asked.condition()
        if isinstance(condition, str):
            return Read(heard.active, {"condition": Mention(condition, condition)})
    return None
