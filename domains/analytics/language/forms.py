"""The simple forms of requests: a pattern of the whole line, and the clauses that may stand beside it.

Clauses are taken out of a message's line first; what is left has to be the form's pattern and nothing else.
So every word of a message is accounted for, or it is not read at all. Group names are those of slots.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from domains.analytics.language.vocabulary import (
    CASES,
    CHARTS,
    DIRECTIONS,
    FORMATS,
    FUNCTIONS,
    MOVEMENTS,
    RHYTHMS,
    SEPARATORS,
    STRATEGIES,
    TOP,
    TYPES,
    one_of,
)

_PARTS: Mapping[str, str] = {
    "FIND": r"(?:show|list|find|get|select|display|see|view|open|preview|which|what|what are|to see|look at)",
    "LOOK": r"(?:find|show|check|check for|look for|are there|is there|any|are there any|does)",
    "ON": r"(?: (?:of|in|on|for|from|about))?",
    "GROUP": r"(?:C\d+|year|month)",
    "COLUMNS": r"(?P<columns>[CQ]\d+(?:(?: ,| and| , and)? [CQ]\d+)*)",
    "COLUMN": r"(?P<column>C\d+)",
    "TABLE": r"(?P<table>T\d+|IT)",
    "OTHER": r"(?P<other_table>T\d+)",
    "NAME": r"(?P<new_name>[^\s,]+(?: [^\s,]+){0,2})",
    "FUNCTION": rf"(?P<function>{one_of(FUNCTIONS)})",
    "KIND": rf"(?P<kind>{one_of(CHARTS)})",
    "DIRECTION": rf"(?P<direction>{one_of(DIRECTIONS)})",
    "FORMAT": rf"(?P<format>{one_of(FORMATS)})(?: file| format)?",
    "CASE": rf"(?P<case>{one_of(CASES)})(?: case)?",
    "STRATEGY": rf"(?:(?P<strategy>{one_of(STRATEGIES)})|(?P<fill_value>N\d+))",
    "TYPE": rf"(?P<type>{one_of(TYPES)})",
    "SEPARATOR": rf"(?P<separator>{one_of(SEPARATORS)})",
    "MOVEMENT": rf"(?P<movement>{one_of(MOVEMENTS)})",
}


def _compile(pattern: str) -> re.Pattern[str]:
    """Put the parts in; a group that occurs again has marks after its name, which `_groups` takes off."""
    written = re.sub(r"\b[A-Z]{2,}\b", lambda part: _PARTS.get(part[0], part[0]), pattern)
    seen: list[str] = []

    def name_anew(group: re.Match[str]) -> str:
        seen.append(group[1])
        return f"(?P<{group[1]}{'_' * (seen.count(group[1]) - 1)}>"

    return re.compile(re.sub(r"\(\?P<(\w+)>", name_anew, written))


_CLAUSES: Mapping[str, re.Pattern[str]] = {
    name: _compile(rf"(?<!\S)(?:{pattern})(?!\S)")
    for name, pattern in {
        "where": r"(?:rows |those |ones )?(?P<condition>W)",
        "sorted": r"(?:and )?(?:sorted|ordered|ranked) by (?P<order>C\d+)(?: DIRECTION)?",
        "top": rf"(?P<direction>{one_of(TOP)}) (?P<limit>N\d+)",
        "top_by": r"by (?P<order>C\d+)",
        "first": r"(?:first (?P<limit>N\d+)(?: rows)?|(?P<limit>N\d+) rows)(?: (?:of|from))?",
        "by": r"(?:grouped )?(?:by|per|for each|of each|in each) (?P<by>GROUP)(?: and (?:by )?(?P<also_by>GROUP))?",
        "against": r"(?:by|per|against|over|versus) (?P<by>GROUP)",
        "rhythm": rf"(?:every|each|on) (?P<every>{one_of(RHYTHMS)}|C\d+)|(?P<every>daily|weekly|monthly)",
        "hour": r"at (?P<at>\d\d:\d\d)",
        "two_tables": r"(?:of|from|in) (?P<table>T\d+) and (?P<other_table>T\d+)",
        "value": r"(?:(?:of|from|in|for|are|is) )?(?P<value>V\d+)(?: ones)?",
        "table": r"(?:(?:of|in|from|on|for|about|to|into|does|do|has|have) )?(?:table )?(?P<table>T\d+)(?: table| data)?"
        r"(?: (?:have|has))?",
    }.items()
}
"""In the order in which they are taken out."""
_ROWS = "where value table "


@dataclass(frozen=True, slots=True)
class Form:
    """`clauses`: what may stand beside the pattern. `needs`: slots and names without which it is not meant."""

    flow: str
    pattern: re.Pattern[str]
    clauses: tuple[str, ...]
    needs: tuple[str, ...]

    def match(self, line: str) -> dict[str, str] | None:
        """Give the parts of a line by slot; None when it is not of this form, as a whole."""
        found: dict[str, str] = {}
        for name in (name for name in _CLAUSES if name in self.clauses):
            clause = _CLAUSES[name].search(line)
            if clause is not None:
                found |= _groups(clause)
                line = " ".join(f"{line[: clause.start()]} {line[clause.end() :]}".split())
        rest = self.pattern.fullmatch(line)
        if rest is None:
            return None
        found |= _groups(rest)
        return found if all(name in found for name in self.needs) else None


def _groups(found: re.Match[str]) -> dict[str, str]:
    return {name.rstrip("_"): part for name, part in found.groupdict().items() if part is not None}


def _form(flow: str, pattern: str, clauses: str = "", needs: str = "") -> Form:
    return Form(flow, _compile(f"(?:{pattern})"), tuple(clauses.split()), tuple(needs.split()))


FORMS: tuple[Form, ...] = (
    _form("undo_last_step", r"(?:undo|revert|roll back|take back)(?: IT)?(?: last)?(?: step| change)?|take IT back"),
    _form("show_history", r"what (?:have|did) changed?|what has been changed|(?:show |list )?(?:my )?(?:history|changes|steps)"),
    _form("list_tables", r"(?:(?:which|what|list|show|see) )?(?:my )?tables(?: (?:are there|do have|there are))?"),
    _form("list_tables", r"what data (?:is there|do have)"),
    _form("list_schedules", r"(?:(?:list|show|which|what) )?(?:my )?schedules(?: are there)?|what is scheduled"),
    _form("cancel_schedule", r"(?:cancel|stop|delete|remove) schedule(?: number)?(?: (?P<number>N\d+))?"),
    _form("schedule_report", r"(?:schedule|send|make|set up|want)(?: (?:regular|scheduled))? report", "rhythm hour table"),
    _form("export", r"(?:export|download)(?: IT)?(?: (?:as|to))?(?: FORMAT)?|save(?: IT)?(?: as)? FORMAT", _ROWS),
    _form("export", r"(?:show|get)? ?(?:IT )?as FORMAT", "table"),
    _form("schedule_report", r"(?:want )?report", "rhythm hour table", "every"),
    _form("save_result", r"(?:save|keep|store) (?:TABLE|IT|result|answer)(?: (?:as|under)(?: NAME)?)?"),
    _form("report", r"(?:(?:make|write|create|full|show) )?report(?: (?:on|about))?(?: IT)?", "table"),
    _form("describe_table", r"(?:describe|explain)(?: IT)?|(?:show )?(?:schema|structure)ON(?: IT)?", "table"),
    _form("describe_table", r"(?:which |what |what are |list |show )?(?:columns|fields)(?: (?:are there|are|do|does))?", "table"),
    _form("describe_table", r"what is (?:in|about) TABLE|what is TABLE about|columns of IT"),
    _form("profile", r"(?:profile|summari[sz]e|(?:show )?(?:summary )?(?:statistics|stats))(?: IT)?ON(?: COLUMN)?", "table"),
    _form("find_missing", r"(?:LOOK )?(?:missing(?: values)?|gaps|nulls)ON(?: IT)?(?: COLUMN)?", "table"),
    _form("find_missing", r"check(?: IT)? for missing values", "table"),
    _form("find_duplicates", r"(?:LOOK )?(?:duplicates|duplicate rows)ON(?: IT)?(?: COLUMN)?", "table"),
    _form("find_outliers", r"(?:LOOK )?(?:outliers)ON(?: IT)?(?: COLUMN)?", "table"),
    _form("correlate", r"(?:show )?(?:correlations?|correlate)(?: (?:between|of|in))?(?: IT)?"
          r"(?: COLUMN(?: (?:and|with) (?P<other_column>C\d+))?)?", "table"),
    _form("correlate", r"is COLUMN correlated with (?P<other_column>C\d+)", "table"),
    _form("deduplicate", r"(?:remove|delete|drop) (?:duplicates|duplicate rows)ON(?: COLUMN)?|(?:deduplicate|dedupe)(?: IT)?",
          "table"),
    _form("rename_column", r"rename(?: column)? COLUMN(?: column)?(?: to)?(?: NAME)?", "table"),
    _form("drop_table", r"(?:drop|delete|remove) (?:whole )?table(?: TABLE)?|(?:drop|delete|remove) TABLE table"),
    _form("drop_column", r"(?:drop|remove|delete)(?: column)? COLUMN(?: column)?|(?:drop|remove|delete) column", "table"),
    _form("delete_rows", r"(?:delete|remove|drop) rows(?: of)?", _ROWS),
    _form("delete_rows", r"(?:delete|remove)", _ROWS, "condition"),
    _form("filter", r"(?:keep(?: only)?|filter)(?: IT)?(?: to)?(?: rows)?", _ROWS),
    _form("clean", r"(?:clean|tidy)(?: up)?(?: IT)?(?: texts)?ON(?: COLUMN)?|trim COLUMN", "table"),
    _form("clean", r"(?:make|put|turn|convert) COLUMN(?: (?:to|into|in))? CASE", "table"),
    _form("cast_column", r"(?:convert|cast|change|turn)(?: type of)? COLUMN (?:to|into|as)(?: TYPE)?", "table"),
    _form("fill_missing", r"(?:fill|replace|set)(?: in)?(?: missing| gaps)?(?: values)?ON(?: COLUMN)?(?: (?:with|by|to) STRATEGY)?", "table"),
    _form("sort", r"(?:sort|order)(?: IT)?(?: rows)?(?: by (?P<order>C\d+))?(?: DIRECTION)?", "table"),
    _form("sample", r"(?:(?:take|draw|make) )?(?:random )?sample(?: of)?(?: (?P<size>N\d+)(?: rows)?)?(?: as NAME)?", "table"),
    _form("derive_column", r"(?:add|create|make|compute)(?: new)?(?: computed)? column", "table"),
    _form("merge", r"(?:merge|join|combine)(?: tables?)?(?: TABLE)?(?: (?:and|with|to) OTHER)?"
          r"(?: (?:on|by) (?P<key>C\d+))?(?: as NAME)?|merge two tables"),
    _form("union", r"(?:union|stack)(?: of)? TABLE (?:and|with) OTHER(?: as NAME)?|append(?: rows of)? OTHER to TABLE"),
    _form("split", r"(?:split|divide)(?: table)? TABLE(?: table)?(?: by (?P<by>C\d+))?"),
    _form("split_column", r"split(?: up)?(?: column)? COLUMN(?: column)?(?: (?:at|by)(?: each)? SEPARATOR)?"
          r"(?: into (?:(?:several )?columns|parts|(?P<columns>\S+(?: , \S+)*(?: ,)? and \S+)))?", "table"),
    _form("insert_row", r"(?:insert|add)(?: new)? (?:row|record)(?: (?:in|to))?", "where table"),
    _form("pivot", r"pivot(?: table of)?(?: FUNCTION)?(?: COLUMN)?(?: IT)?"
          r"(?: by (?P<by>GROUP) (?:and|across) (?P<across>GROUP))?(?: as NAME)?", "table"),
    _form("compare", r"compare(?: FUNCTION)?(?: COLUMN)?(?: (?:of|for|between|in))? (?P<first>V\d+) "
          r"(?:and|with|to|versus|vs) (?P<second>V\d+)", "table"),
    _form("compare", r"compare(?: FUNCTION)?(?: COLUMN)?(?: (?:of|in|between))? (?P<first_year>N\d+) (?:and|with|to) "
          r"(?P<second_year>N\d+)", "table"),
    _form("explain_change", r"(?:why (?:did|has|have)|what happened to) (?P<column>C\d+|[a-z]\w*(?: [a-z]\w*)??)"
          r"(?: of (?:(?P<value>V\d+)|(?P<table>T\d+)))?(?: MOVEMENT)?(?: in (?P<month>[a-z]+))?(?: (?P<year>N\d+))?"),
    _form("chart", r"(?:(?:draw|plot|show|make|create) )?KIND(?: (?:of|for))?(?: FUNCTION)?(?: COLUMN)?", f"{_ROWS} against"),
    _form("chart", r"(?:plot|chart|graph|draw|visuali[sz]e)(?: FUNCTION)? COLUMN", f"{_ROWS} against"),
    _form("preview", r"(?:FIND(?: head of)?)?(?: ?IT)?(?: ?rows)?", "first table", "table"),
    _form("preview", r"FIND IT|(?:show )?(?:IT )?|FIND", "first", "limit"),
    _form("preview", r"(?:show|display|open|preview|see|view) IT"),
    _form("preview", r"preview|open"),
    _form("aggregate", r"(?:what|which|list) (?:(?:different|distinct) )?(?P<by>C\d+)(?: are there| are)", "table"),
    _form("query", r"(?:FIND)?(?: ?COLUMNS)?(?: of)?", "where sorted top top_by value table", "direction order"),
    _form("query", r"(?:FIND)?(?: ?COLUMNS)?(?: of)?(?: are there| are)?", f"{_ROWS} sorted first"),
    _form("query", r"(?:FIND )COLUMNS", f"{_ROWS} two_tables sorted first", "other_table"),
    _form("aggregate", r"(?:(?:what is|what was|show|calculate|compute) )?FUNCTION(?: of)?(?: COLUMN)?(?: rows)?(?: (?:are there|are|of))?",
          f"{_ROWS} by"),
    _form("aggregate", r"(?:show|group)?(?: ?COLUMN)?", f"{_ROWS} by", "by"),
    _form("query", r"(?:show|list|find|get|select) (?P<columns>\S+(?:(?: ,| and| , and) \S+)*) (?:of|from) TABLE"),
)  # fmt: skip
"""In the order in which they are tried; the last takes unknown words for columns that are asked for."""

CONTINUATIONS: tuple[Form, ...] = (
    _form(
        "aggregate",
        r"(?:(?:and|now|what about|how about|what is|make IT) )?FUNCTION(?: are there| are)?",
        "where value",
    ),
    _form("aggregate", r"(?:and|what about|how about) COLUMN"),
    _form("aggregate", r"(?:and|now|what about|how about)?(?: group(?: IT)?)?", "by", "by"),
    _form(
        "chart",
        r"(?:(?:and|now|show|draw|make|plot|turn) )?(?:IT )?(?:as |into )?KIND|(?:plot|draw|chart) IT",
    ),
    _form("query", r"(?:(?:and|now) )?(?:sort|order)(?: IT)? by (?P<order>C\d+)(?: DIRECTION)?"),
    _form(
        "",
        r"(?:and|now|but)?(?: ?(?:show )?only)?(?: IT)?(?: those)?",
        "where value sorted first",
        "condition",
    ),
    _form("query", r"(?:and|now)?(?: ?(?:show )?only)?", "sorted first"),
)
"""Forms that go on from the question before; an empty flow stands for the flow of that question."""


def known_words() -> frozenset[str]:
    """The words that forms are made of."""
    patterns = [form.pattern.pattern for form in (*FORMS, *CONTINUATIONS)]
    patterns += [clause.pattern for clause in _CLAUSES.values()]
    return frozenset(
        word for pattern in patterns for word in re.findall(r"(?<![<\\a-zA-Z_])[a-z]{2,}", pattern)
    )


def matches(forms: tuple[Form, ...], line: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Give the flows and parts of all forms that a line has."""
    for form in forms:
        found = form.match(line)
        if found is not None:
            yield form.flow, found
