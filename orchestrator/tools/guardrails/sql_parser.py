"""Bounds the work of the parser, which on some texts goes to and fro without end.

What a query costs when it runs is held by the process in which it does.
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token

STEPS_PER_TOKEN = 12  # ordinary statements take up to three; a step takes some ten microseconds
STEPS_AT_LEAST = 500


class TooMuchWork(Exception):
    """The parser has gone to and fro more often than any ordinary statement asks for."""


def parse(tokens: list[Token], code: str, dialect: str) -> list[exp.Expr]:
    """Parse the statements of a text, with a bound on the work.

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
