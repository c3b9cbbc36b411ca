"""Requests about what was done and what is to be kept: undo, history, schedules, saving, exports, reports."""

from __future__ import annotations

import re

from domains.analytics.wording.common import REMOVE, new_name, whole_number
from domains.analytics.wording.request import OF_A_QUESTION, Request
from domains.analytics.wording.unknown import table_or_unknown
from domains.analytics.wording.vocabulary import WEEKDAYS
from orchestrator.domain.reader import Read
from orchestrator.types import Json


def undo(asked: Request) -> Read | None:
    if re.match(
        (
            r"(?:now |oh |no |wait |sorry )*(?:undo|revert|roll ?back|restore|take (?:that|it"
            r"|this) back|put (?:it|that) back|reverse)\b"
        ),
        asked.line,
    ):
        return asked.read("undo_last_step", table=None)
    return None


def show_history(asked: Request) -> Read | None:
    if asked.has(
        r"what (?:have|did|has|had) i? ?(?:been )?(?:change|do|done|changed)|(?:show|list"
        r"|see)? ?(?:change )?history|(?:list|show|which|what) (?:of )?(?:changes|steps)"
        r"|changes so far"
    ):
        return asked.read("show_history", table=None)
    return None


def schedules(asked: Request) -> Read | None:
    number = next((item.number for item in asked.items if item.number), None)
    about = asked.has(r"schedules?|scheduled|unschedule|standing orders?|regular reports?|recurring")
    if about and asked.has(rf"cancel|stop|end|unschedule|{REMOVE}"):
        return asked.read("cancel_schedule", table=None, number=whole_number(number))
    if (
        about
        and asked.has(r"list|show|which|what|do have|any|my|see")
        and not asked.has("schedule report|every")
    ):
        return asked.read("list_schedules", table=None)
    rhythm = _rhythm(asked)
    report = asked.has(r"reports?|summary|send|email|mail|schedule")
    if (rhythm and report) or asked.has(r"schedule (?:\w+ )?report"):
        return asked.read("schedule_report", **rhythm)
    return None


def _rhythm(asked: Request) -> dict[str, Json]:
    """How often, and on which day and hour."""
    line = asked.line
    day = next((name for name in WEEKDAYS if re.search(rf"\b{name}s?\b", line)), None)
    found = re.search(
        r"\b(?:every|each|once|per) (?:single )?(day|week|month|morning|evening|weekday)\b", line
    )
    adverb = re.search(r"\b(daily|weekly|monthly)\b", line)
    slots: dict[str, Json] = {}
    if day and asked.has(rf"every {day}|each {day}|on {day}s?|{day}s|weekly"):
        slots |= {"every": "week", "weekday": day}
    elif found:
        slots["every"] = {"morning": "day", "evening": "day", "weekday": "day"}.get(found[1], found[1])
    elif adverb:
        slots["every"] = {"daily": "day", "weekly": "week", "monthly": "month"}[adverb[1]]
    hour = re.search(r"\bat (\d{1,2})(?: ?[:.] ?(\d{2}))? ?(am|pm|o'clock)?\b", asked.heard.text.casefold())
    if slots and hour and int(hour[1]) < 24:
        count = int(hour[1]) % 12 if hour[3] in {"am", "pm"} else int(hour[1])
        slots["at"] = f"{count + 12 * (hour[3] == 'pm'):02d}:{hour[2] or '00'}"
    return slots


def save(asked: Request) -> Read | None:
    if not asked.has(r"save|store|keep|remember|name") or asked.has(
        r"csv|json|file|spreadsheet|rename|column|change"
    ):
        return None
    found = re.match(
        r"(?:save|store|keep|remember|name) (?:that|this|it|them|those|these|result|results|answer|TABLE)?\b",
        asked.line,
    )
    name = new_name(asked)
    if found is None or (name is None and not asked.has("save|store")):
        return None
    first = asked.items[1] if len(asked.items) > 1 else asked.items[0]
    said = first.meaning.tables[0] if first.meaning.tables else None
    return asked.read(
        "save_result",
        table=said or asked.before.get("table") or asked.table or "",
        new_name=name,
        question=None if said else question_of(asked),
    )


def question_of(asked: Request) -> Json:
    """What the last answer showed, where it was a part of a table."""
    about = asked.before.get("table") if not asked.named or asked.before.get("table") in asked.named else None
    if about is None or asked.dact_before in {"preview", "describe_table", "profile"}:
        return None
    return {name: asked.before[name] for name in OF_A_QUESTION if asked.before.get(name) is not None} or None


def take_along(asked: Request) -> Read | None:
    format_ = next((name for name, said in _FORMATS.items() if asked.has(said)), None)
    if asked.has(r"export|download|to file|as file|dump") or (
        format_ and asked.has("save|as|get|write|make|hand|in|to|into")
    ):
        question = question_of(asked) or _question_said(asked)
        about = asked.before.get("table") if question and not asked.named else None
        return asked.read("export", table=about or table_or_unknown(asked), format=format_, question=question)
    if asked.has(r"reports?") and not asked.has("scheduled?"):
        return asked.read("report", table=table_or_unknown(asked))
    return None


_FORMATS = {"csv": r"csv|spreadsheet|excel|comma separated", "json": "json"}


def _question_said(asked: Request) -> Json:
    """“export the Japanese cars as csv”: the part of a table that is said."""
    condition = asked.condition()
    return {"condition": condition} if isinstance(condition, str) else None
