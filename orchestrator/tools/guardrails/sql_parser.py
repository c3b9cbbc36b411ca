"""Limit the work of the SQL parser, which backtracks endlessly on some texts."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token

STEPS_PER_TOKEN = 12  # ordinary statements need up to three steps; a step takes about ten microseconds
STEPS_AT_LEAST = 500


class TooMuchWork(Exception):
    """Raised if the parser exceeds its limit of steps."""


def parse(tokens: list[Token], code: str, dialect: str) -> list[exp.Expr]:
    """Parse the statements in a text, with a limited number of steps.

    Raises:
        ParseError: the SQL is invalid.
        RecursionError: the SQL is nested too deeply for the interpreter.
        TooMuchWork: parsing exceeded the limit.
    """
    known = Dialect.get_or_raise(dialect)
    parser = _bounded(known.parser_class)(dialect=known, error_level=ErrorLevel.IMMEDIATE)
    parser.steps_left = STEPS_AT_LEAST + STEPS_PER_TOKEN * len(tokens)
    return [tree for tree in parser.parse(tokens, code) if tree is not None]


@lru_cache
def _bounded(base: type[Parser]) -> type[BoundedParser]:
    return type("BoundedParser", (BoundedParser, base), {})


class BoundedParser(Parser):
    """A dialect's parser that counts its steps between tokens, including backtracking."""

    steps_left: int

    def _advance(self, times: int = 1) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise TooMuchWork
        super()._advance(times)
