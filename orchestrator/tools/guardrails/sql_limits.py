"""How large a value a statement may make of small ones by a number that it names.

A database's memory limit does not count what one call of `repeat`, `lpad` or `range` builds, nor can
it be interrupted meanwhile: four gigabytes come of twenty letters. What grows by concatenation, in
joins and in recursion is counted, and is left to the limit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from math import prod

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token

from orchestrator.tools.guardrails.verdict import Category, Rejected

MOST = 10_000
"""Characters or elements of one value, of which a database holds 2,048 at a time."""
_UNKNOWN = MOST + 1
_WIDTH = re.compile(r"\d{3,}")


def find_growth(tree: exp.Expr) -> Rejected | None:
    """Whether some value might become too large.

    What multiplies does so along calls within calls, and from query to query; lists also beside each
    other, for one may be made for each element of another. What pads a text does not multiply.
    """
    queries: dict[int, list[exp.Expr]] = defaultdict(list)
    for node in tree.walk():
        factor = _factor(node)
        if factor > MOST:
            return _too_large(
                f"{node.sql(dialect='duckdb', comments=False)[:60]} names no size, or one that is"
            )
        if factor > 1 and _name(node) not in _PADDING:
            queries[id(node.find_ancestor(exp.Select))].append(node)
    largest = prod(_growth(calls) for calls in queries.values())
    return _too_large("Its sizes, multiplied, are") if largest > MOST else None


def _growth(calls: list[exp.Expr]) -> int:
    """Within one query."""
    lists = prod(_factor(call) for call in calls if _name(call) in _LISTS)
    return max(lists, *(prod(_factors_around(call)) for call in calls))


def _too_large(what: str) -> Rejected:
    return Rejected(
        Category.TOO_LARGE,
        f"{what} too large for one value. Write the number itself or least(…, 1000); make rows with "
        "range(…) in FROM.",
    )


def _factors_around(node: exp.Expr) -> Iterator[int]:
    """Of a call and of the calls that it is in, up to its query."""
    inner: exp.Expr | None = node
    while inner is not None and not isinstance(inner, exp.Select):
        if _name(inner) not in _PADDING:
            yield _factor(inner)
        inner = inner.parent


def _factor(node: exp.Expr) -> int:
    """How many times larger than its inputs the result of a call may be; 1 for all but a few."""
    if isinstance(node.parent, exp.Table):
        return 1  # rows, one after another
    size = _SIZES.get(_name(node))
    return 1 if size is None else max(1, size(node))


def _name(node: exp.Expr) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else node.key


def _number(node: object) -> int:
    """A literal, or the literal that `least` bounds an expression with."""
    match node:
        case exp.Cast(this=inner) | exp.Paren(this=inner):
            return _number(inner)
        case exp.Neg():
            return 1
        case exp.Literal(is_string=False, this=str(text)) if text.isdigit():
            return min(int(text), _UNKNOWN)
        case exp.Least(this=first, expressions=others):
            return min(_number(one) for one in (first, *others))
        case _:
            return _UNKNOWN


def _elements(node: exp.Expr) -> int:
    """Of a list from one number to another."""
    start, end, step = (node.args.get(name) for name in ("start", "end", "step"))
    if step is not None and not isinstance(step, exp.Literal):
        return _UNKNOWN
    return _number(end) if start is None else _number(start) + _number(end)


def _replaced(node: exp.Expr) -> int:
    """Each place of a pattern may become as long as what replaces it."""
    new = node.args.get("replacement")
    return len(new.this) if isinstance(new, exp.Literal) else 1 if new is None else _UNKNOWN


def _formatted(node: exp.Expr) -> int:
    """A width in a format is the number that it is padded to."""
    pattern = node.this if isinstance(node, exp.Format) else next(iter(node.expressions), None)
    if not isinstance(pattern, exp.Literal) or "{:{" in pattern.this or "*" in pattern.this:
        return _UNKNOWN
    return max((min(int(width), _UNKNOWN) for width in _WIDTH.findall(pattern.this)), default=1)


def _second(node: exp.Expr) -> int:
    return _number(node.expressions[1]) if len(node.expressions) > 1 else _UNKNOWN


_SIZES: dict[str, Callable[[exp.Expr], int]] = {
    "repeat": lambda node: _number(node.args.get("times")),
    "space": lambda node: _number(node.this),
    "pad": lambda node: _number(node.args.get("expression")),
    "generateseries": _elements,
    "replace": _replaced,
    "regexpreplace": _replaced,
    "format": _formatted,
    "printf": _formatted,
    "list_resize": _second,
    "array_resize": _second,
}
_PADDING = frozenset({"pad", "format", "printf"})
_LISTS = frozenset({"generateseries", "list_resize", "array_resize"})


STEPS_PER_TOKEN = 12
"""Ordinary statements take up to three; a step takes some ten microseconds."""
STEPS_AT_LEAST = 500


class TooMuchWork(Exception):
    """The parser has gone to and fro more often than any ordinary statement asks for."""


def parse(tokens: list[Token], code: str, dialect: str) -> list[exp.Expr]:
    """The statements of a text.

    Raises:
        ParseError: it is no valid SQL.
        RecursionError: it is nested more deeply than the interpreter can follow.
        TooMuchWork: see there.
    """
    known = Dialect.get_or_raise(dialect)
    parser = _bounded(known.parser_class)(dialect=known, error_level=ErrorLevel.IMMEDIATE)
    parser.steps_left = STEPS_AT_LEAST + STEPS_PER_TOKEN * len(tokens)
    return [tree for tree in parser.parse(tokens, code) if tree is not None]


@lru_cache
def _bounded(base: type[Parser]) -> type[BoundedParser]:
    return type("BoundedParser", (BoundedParser, base), {})


class BoundedParser(Parser):
    """Counts the steps from word to word, also those back, on top of the parser of a dialect."""

    steps_left: int

    def _advance(self, times: int = 1) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise TooMuchWork
        super()._advance(times)
