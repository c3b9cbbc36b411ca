"""Common parts of slot validators: verdicts, and cleaning of text and numbers. `slots` defines the types."""

import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.dialogue.specification import SlotSpec
from orchestrator.saying import Told, say
from orchestrator.types import Json, is_list, is_object

LONGEST_TEXT = 500
"""Maximum length of a single value, in characters."""
LONGEST_FREE_TEXT = 2000
LONGEST_TOKEN = 128
MOST_ITEMS = 64
DEEPEST_NESTING = 8
MOST_NODES = 512
LARGEST_INTEGER = 2**53
"""The largest integer that all JSON parsers represent exactly."""

_NUMBER = re.compile(r"[+-]?(\d{1,16}|\d{1,3}(,\d{3}){1,5})(\.\d{1,12})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Valid:
    """A valid value in its stored form: trimmed and canonical."""

    value: Json


@dataclass(frozen=True, slots=True)
class Rejected:
    """A rejected value. `why`: one or two sentences for the user, with the problem and its fix."""

    why: Told


def reject(code: str, spec: SlotSpec, **values: Json) -> Rejected:
    """Return a rejection of the slot's value. `code`: the message code. `values`: further message variables."""
    return Rejected(say(code, slot=spec.label, **values))


Verdict: TypeAlias = Valid | Rejected
Validator: TypeAlias = Callable[[Json, SlotSpec], Verdict]


@dataclass(frozen=True, slots=True)
class SlotType:
    """A slot type with its validator. `check`: accepts any JSON value and never raises."""

    name: str
    check: Validator
    description: str = ""


def show(value: Json) -> str:
    """Return a short text for quoting a value in a sentence, or an ellipsis for null, lists and objects."""
    text = value[:200] if isinstance(value, str) else as_text(value)
    if text is None:
        return "…"
    text = strip_controls(text).replace("\n", " ").strip()
    return f"{text[:60]}…" if len(text) > 60 else text


def as_text(value: Json) -> str | None:
    """Return a number or boolean as text, or None for other values and for integers above `LARGEST_INTEGER`."""
    if isinstance(value, float):
        return repr(value)
    return str(value) if isinstance(value, int) and abs(value) <= LARGEST_INTEGER else None


def _is_harmless(character: str) -> bool:
    return character in "\n\t" or unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co"}


def strip_controls(text: str) -> str:
    """Remove control characters and invisible characters, except newlines, tabs and zero-width joiners."""
    if text.isascii() and text.isprintable():
        return text
    joined = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(character for character in joined if _is_harmless(character) or character == "\u200d")


def check_line(value: Json, spec: SlotSpec, *, longest: int = LONGEST_TEXT) -> Verdict:
    """Check a text of up to `longest` characters, and collapse its whitespace to one line."""
    if not isinstance(value, str):
        return reject("not_text", spec, value=show(value))
    if len(value) > 4 * longest:
        return reject("text_too_long", spec, most=longest)
    line = " ".join(strip_controls(value).split())
    if not line:
        return reject("value_empty", spec)
    if len(line) > longest:
        return reject("text_too_long", spec, most=longest)
    return Valid(line)


def _wants_number(value: Json, spec: SlotSpec) -> Rejected:
    return reject("not_number", spec, value=show(value))


def check_number(value: Json, spec: SlotSpec) -> Verdict:
    """Check that a value is a finite number that JSON can represent exactly. Strings are parsed as numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return _wants_number(value, spec)
    if isinstance(value, str):
        numeral = value.strip()
        if len(numeral) > 40 or not _NUMBER.fullmatch(numeral):
            return _wants_number(value, spec)
        value = float(numeral.replace(",", ""))
    if isinstance(value, float) and not math.isfinite(value):
        return _wants_number(value, spec)
    if abs(value) > LARGEST_INTEGER:
        return reject("number_too_large", spec, most=f"{LARGEST_INTEGER:,}")
    return Valid(int(value) if isinstance(value, float) and value.is_integer() else value)


def _show_bound(bound: float | None) -> str | None:
    if bound is None:
        return None
    return f"{bound:g}" if abs(bound) < 1e6 else f"{bound:,.0f}"


def check_bounded(value: Json, spec: SlotSpec) -> Verdict:
    verdict = check_number(value, spec)
    if isinstance(verdict, Rejected):
        return verdict
    number = verdict.value
    too_low = spec.minimum is not None and number < spec.minimum
    too_high = spec.maximum is not None and number > spec.maximum
    if too_low or too_high:
        least, most = _show_bound(spec.minimum), _show_bound(spec.maximum)
        return reject("out_of_bounds", spec, least=least, most=most, value=show(number))
    return verdict


def choose(text: str, spec: SlotSpec) -> str | None:
    """Return the declared value that matches `text`, ignoring case, directly or by a synonym, or None."""
    if text in spec.values:
        return text
    folded = text.casefold()
    for value in spec.values:
        if value.casefold() == folded:
            return value
    for synonym, value in spec.synonyms.items():
        if synonym.casefold() == folded:
            return value
    return None


def is_bounded_json(value: Json) -> bool:
    """Return whether JSON is within the limits on nesting, nodes, text length and integers, without NaN or infinity."""
    level, count = [value], 0
    for _ in range(DEEPEST_NESTING + 1):
        count += len(level)
        if count > MOST_NODES or not all(_is_json_node(node) for node in level):
            return False
        level = [child for node in level for child in _children(node)]
        if not level:
            return True
    return False


def _is_json_node(node: Json) -> bool:
    if isinstance(node, str):
        return len(node) <= LONGEST_FREE_TEXT
    if isinstance(node, float):
        return math.isfinite(node)
    if isinstance(node, dict):
        return all(isinstance(key, str) for key in node)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(node, int):
        return abs(node) <= LARGEST_INTEGER
    return node is None or isinstance(node, list)


def _children(node: Json) -> list[Json]:
    if is_object(node):
        return list(node.values())
    return node if is_list(node) else []
