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

_declared = yaml.safe_load(Path(__file__).with_name("forms.yaml").read_text(encoding="utf-8"))
WORDS: Mapping[str, Mapping[str, str]] = {
    slot: {word: value for value, words in values.items() for word in words}
    for slot, values in _declared["words"].items()
}
"""What is said for the values of slots."""
_LIST = r"(?:(?: ,| and| , and) {0})*"
_PATTERNS: Mapping[str, str] = {
    **dict.fromkeys(("column", "order", "key", "other_column", "split_by", "day"), r"C\d+"),
    **dict.fromkeys(("by", "also_by", "across"), r"C\d+|year|month"),
    **dict.fromkeys(("value", "first", "second"), r"V\d+"),
    **dict.fromkeys(("limit", "size", "number", "first_year", "second_year", "year", "fill_value"), r"N\d+"),
    **{slot: "|".join(sorted(words, key=len, reverse=True)) for slot, words in WORDS.items()},
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
    "named_table": "table", "split_by": "by", "top": "direction", "weekday": "every", "day": "every",
    "said_columns": "columns", "parts": "columns", "measure": "column",
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
    clauses: tuple[str, ...]
    needs: tuple[str, ...]

    def match(self, line: str) -> dict[str, str] | None:
        """Give the parts of a line by slot; None when it is not of this form, as a whole."""
        found: dict[str, str] = {}
        rest = f" {line}"
        for name in (name for name in _CLAUSES if name in self.clauses):
            clause = _CLAUSES[name].search(rest)
            if clause is not None:
                found |= _parts(clause)
                rest = f"{rest[: clause.start()]}{rest[clause.end() :]}"
        whole = self.pattern.fullmatch(rest.rstrip())
        if whole is None:
            return None
        found |= _parts(whole)
        return found if all(name in found for name in self.needs) else None


def _parts(found: re.Match[str]) -> dict[str, str]:
    parts = {name.partition("__")[0]: part for name, part in found.groupdict().items() if part is not None}
    return {_SLOTS.get(name, name): part for name, part in parts.items()}


def _read_forms(name: str) -> tuple[Form, ...]:
    return tuple(
        Form(
            entry["flow"],
            _compile(entry["form"]),
            tuple(entry.get("with", "").split()),
            tuple(entry.get("needs", "").split()),
        )
        for entry in _declared[name]
    )


FORMS, CONTINUATIONS = _read_forms("forms"), _read_forms("continuations")
_ALL = [entry["form"] for name in ("forms", "continuations") for entry in _declared[name]]
KNOWN_WORDS = frozenset(
    word
    for text in (
        *_ALL,
        *_declared["parts"].values(),
        *_declared["clauses"].values(),
        *map(" ".join, WORDS.values()),
    )
    for word in re.findall(r"(?<![{<\w])[a-z]+(?![\w}>])", text)
)


def matches(forms: tuple[Form, ...], line: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Give the flows and parts of all forms that a line has."""
    for form in forms:
        found = form.match(line)
        if found is not None:
            yield form.flow, found
