"""Match lines of messages with the simple forms of requests, which forms.yaml writes down.

Clauses are taken out of a line first; what is left has to be a form and nothing else. So every word of a
message is accounted for, or it is not read at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from domains.analytics.statements.parts import words

_declared = yaml.load(Path(__file__).with_name("forms.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
WORDS: Mapping[str, Mapping[str, str]] = {
    slot: {word: value for value, said in values.items() for word in said}
    for slot, values in _declared["words"].items()
}
"""What is said for the values of slots."""
WORDS_OF_CLAUSES: Mapping[str, Mapping[str, str]] = {
    "direction": {**WORDS["direction"], **WORDS["top"], **WORDS["extreme"]},
    "every": {**WORDS["every"], **WORDS["weekday"]},
}
"""Slots that several kinds of words are said for."""
NUMBERS = words("limit size number first_year second_year year fill_value")
_LIST = r"(?:(?: ,| and| , and) {0})*"
_PATTERNS: Mapping[str, str] = {
    **dict.fromkeys(words("column order key other_column split_by day"), r"C\d+"),
    **dict.fromkeys(words("by also_by across"), r"C\d+|year|month"),
    **dict.fromkeys(words("value first second"), r"V\d+"),
    **dict.fromkeys(NUMBERS, r"N\d+"),
    **{slot: "|".join(sorted(said, key=len, reverse=True)) for slot, said in WORDS.items()},
    "table": r"T\d+|IT",
    "named_table": r"T\d+",
    "other_table": r"T\d+",
    "condition": "W",
    "columns": r"[CQ]\d+" + _LIST.format(r"[CQ]\d+"),
    "said_columns": r"[^\s,]+" + _LIST.format(r"[^\s,]+"),
    "parts": r"[^\s,]+(?: , [^\s,]+)*(?: ,)? (?:and )?[^\s,]+",
    "new_name": r"[^\s,]+(?: [^\s,]+){0,2}",
    "measure": r"C\d+|[a-z]\w*(?: [a-z]\w*)??",
    "month": "[a-z]+",
    "at": r"\d\d:\d\d",
}
_SLOTS: Mapping[str, str] = {
    "named_table": "table", "split_by": "by", "top": "direction", "extreme": "direction", "weekday": "every",
    "day": "every", "said_columns": "columns", "parts": "columns", "measure": "column",
}  # fmt: skip
"""Slots whose values are said in several ways."""
_SIGNS: Mapping[str, str] = {"[": "(?:", "]": ")?", "(": "(?:", ")": ")", "|": "|"}
_ATOM = re.compile(r"[\[\]()|]|\{(?P<slot>\w+)\}|<(?P<part>\w+)>|[^\s\[\]()|{}<>]+")


def _compile(form: str) -> re.Pattern[str]:
    """Write a form as a pattern of a line that begins with a space; each word brings the space before it."""
    seen: list[str] = []

    def write(atom: re.Match[str]) -> str:
        if atom["part"]:
            return "".join(write(one) for one in _ATOM.finditer(_declared["parts"][atom["part"]]))
        if atom["slot"]:
            seen.append(atom["slot"])
            mark = f"{atom['slot']}__{seen.count(atom['slot'])}"
            return f" (?P<{mark}>{_PATTERNS[atom['slot']]})"
        return _SIGNS.get(atom[0], f" {atom[0]}")

    return re.compile("".join(write(atom) for atom in _ATOM.finditer(form)) + r"(?!\S)")


_CLAUSES = {name: _compile(clause) for name, clause in _declared["clauses"].items()}


@dataclass(frozen=True, slots=True)
class Form:
    """`clauses`: what may stand beside the pattern. `needs`: slots without which it is not meant."""

    flow: str
    pattern: re.Pattern[str]
    clauses: frozenset[str]
    needs: frozenset[str]


def _take_out(clauses: frozenset[str], line: str) -> tuple[str, dict[str, str]]:
    """Take these clauses out of a line; gives what is left, and their parts by slot."""
    found: dict[str, str] = {}
    rest = f" {line}"
    for name, pattern in _CLAUSES.items():
        clause = pattern.search(rest) if name in clauses else None
        if clause is not None:
            found |= _parts(clause)
            rest = f"{rest[: clause.start()]}{rest[clause.end() :]}"
    return rest.rstrip(), found


def _parts(found: re.Match[str]) -> dict[str, str]:
    parts = {name.partition("__")[0]: part for name, part in found.groupdict().items() if part is not None}
    return {_SLOTS.get(name, name): part for name, part in parts.items()}


FORMS, CONTINUATIONS = (
    tuple(
        Form(one["flow"], _compile(one["form"]), words(one.get("with", "")), words(one.get("needs", "")))
        for one in _declared[name]
    )
    for name in ("forms", "continuations")
)
_TEXTS = [one["form"] for name in ("forms", "continuations") for one in _declared[name]]
_TEXTS += [*_declared["parts"].values(), *_declared["clauses"].values(), *map(" ".join, WORDS.values())]
KNOWN_WORDS = frozenset(re.findall(r"(?<![{<\w])[a-z]+(?![\w}>])", " | ".join(_TEXTS)))


def matches(forms: tuple[Form, ...], line: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Give the flows and parts of all forms that a line has."""
    left: dict[frozenset[str], tuple[str, dict[str, str]]] = {}
    for form in forms:
        if form.clauses not in left:
            left[form.clauses] = _take_out(form.clauses, line)
        rest, said = left[form.clauses]
        whole = form.pattern.fullmatch(rest)
        if whole is not None and form.needs <= (found := said | _parts(whole)).keys():
            yield form.flow, found
