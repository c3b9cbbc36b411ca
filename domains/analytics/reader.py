"""Reads requests about tables by the catalogue's names and a grammar of such requests, without a model.

What it does not read is left to what was learnt from examples.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from domains.analytics.wording.answers import answer, is_bare
from domains.analytics.wording.following import follow
from domains.analytics.wording.keeping import save, schedules, show_history, take_along, undo
from domains.analytics.wording.looking import compare, correlate, describe, find_faults, list_tables, profile
from domains.analytics.wording.measuring import aggregate, chart
from domains.analytics.wording.names import names_for
from domains.analytics.wording.phrase import read_phrase
from domains.analytics.wording.request import Request
from domains.analytics.wording.rows import preview_unknown, query, sort
from domains.analytics.wording.shaping import derive, insert, merge, split
from domains.analytics.wording.tidying import (
    cast,
    clean,
    delete,
    duplicates,
    fill,
    filter_rows,
    rename,
    sample,
)
from orchestrator.domain.reader import Heard, Read

_CHANGES: tuple[Callable[[Request], Read | None], ...] = (
    undo,
    schedules,
    show_history,
    save,
    split,
    derive,
    insert,
    rename,
    duplicates,
    fill,
    merge,
    clean,
    cast,
    delete,
    filter_rows,
    sample,
)
_QUESTIONS: tuple[Callable[[Request], Read | None], ...] = (
    list_tables,
    take_along,
    profile,
    find_faults,
    sort,
    correlate,
    chart,
    compare,
    describe,
    preview_unknown,
    aggregate,
    query,
)
"""In the order in which they are tried."""
MOST_OF_A_YES = 3
"""Words; an answer to a yes-or-no question may be as long without its first word telling."""
_YES_OR_NO = re.compile(
    r"(?:yes|yep|yeah|no|nope|ok|okay|sure|do it|go|don't|please|stop|cancel)\b", re.IGNORECASE
)
_FREE = frozenset({"new_name", "formula", "first", "second", "number", "month"})
"""Slots whose values may be any words: what is asked for them is left to what reads answers."""
LONGEST = 400
"""Characters; what is longer is no plain request."""
_ELSEWHERE = re.compile(
    (
        r"(?:how (?:do|can|does|should) (?:i|one|you|filtering|formulas)|can i break"
        r"|is it safe|why\b|what happened|explain (?:why|the)|"
        r"find out why|investigate|what (?:is|was) behind|what made|who (?:are|made)"
        r"|(?:show |give )?(?:me )?(?:the )?(?:next|more|page|rest)\b|never ?mind|cancel that|forget|stop$|/)"
    ),
    re.IGNORECASE,
)
"""Beginnings that belong to questions about the assistant, and to plans."""


def read(heard: Heard) -> Read | None:
    """Read a message; None leaves it to the learnt examples."""
    if len(heard.text) > LONGEST or _ELSEWHERE.match(heard.text):
        return None
    names = names_for(heard.own)
    asked = Request(heard, names, read_phrase(heard.text, names))
    if not asked.items or (
        heard.confirming and (len(asked.items) < MOST_OF_A_YES or _YES_OR_NO.match(heard.text))
    ):
        return None
    if heard.asked is not None and heard.active is not None:
        found = answer(asked)
        if found is not None or is_bare(asked) or heard.asked in _FREE:
            return found
    first = next((found for rule in _CHANGES if (found := rule(asked)) is not None), None)
    if first is not None:
        return first
    following = follow(asked)
    if following is not None:
        return following
    return next((found for rule in _QUESTIONS if (found := rule(asked)) is not None), None)
