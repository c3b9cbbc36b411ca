"""Read formulas for new columns with a real parser, and let nothing through but an allowed few operations (PX-10)."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.expressions.core import Expression

from domains.analytics.statements.parts import Values, invalid
from domains.analytics.store.sheet import Sheet
from orchestrator import ToolFailure

_LONGEST = 300
_NAME = re.compile(r"[A-Za-z]\w{0,59}")
_NESTING = 12
_FUNCTIONS: tuple[type[Expression], ...] = (
    exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Sqrt, exp.Ln, exp.Upper, exp.Lower, exp.Length, exp.Trim,
    exp.Year, exp.Month, exp.Day, exp.Coalesce, exp.Concat, exp.Greatest, exp.Least,
)  # fmt: skip
_ALLOWED: tuple[type[Expression], ...] = (
    exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod,
    exp.DPipe, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.And, exp.Or, *_FUNCTIONS,
)  # fmt: skip
FUNCTIONS = sorted(function.key for function in _FUNCTIONS)


def check_name(name: str) -> str:
    """Check a new name of a table or column; gives it in the form in which names are kept.

    Raises:
        ToolFailure: validation_error.
    """
    plain = "_".join(name.strip().split()).lower()
    if _NAME.fullmatch(plain) is None or plain.startswith("in0"):
        raise invalid(f"{name[:60]!r} cannot be a name: use letters, digits and _, beginning with a letter.")
    return plain


def split_formula(text: str) -> tuple[str, str]:
    """Split ``ratio = horsepower / weight`` into name and expression."""
    name, sign, expression = text.partition("=")
    if not sign or not expression.strip():
        raise invalid("Give the new column as “name = formula”, for example “ratio = horsepower / weight”.")
    return check_name(name), expression.strip()


def write_formula(text: str, sheet: Sheet, values: Values) -> str:
    """Write a formula over the columns of a table as a part of a statement; its numbers and texts are parameters.

    Raises:
        ToolFailure: not_found for an unknown column, validation_error for anything but plain arithmetic.
    """
    select = _parse(text)
    formula = select.expressions[0]
    for node in formula.walk():
        if type(node) not in _ALLOWED:
            raise _refused(f"{node.key} is not allowed; use + - * / and {', '.join(FUNCTIONS)}")
        if isinstance(node, exp.Column) and node.table:
            raise _refused("name columns alone")
    for column in list(formula.find_all(exp.Column)):
        column.this.replace(exp.to_identifier(sheet.column(column.name).name, quoted=True))
    for literal in list(formula.find_all(exp.Literal)):
        literal.replace(exp.Placeholder(this=values.add(_value_of(literal)).removeprefix("$")))
    for division in list(formula.find_all(exp.Div)):
        division.set("expression", exp.Nullif(this=division.expression, expression=exp.Literal.number(0)))
    return select.expressions[0].sql("duckdb", comments=False)


def _parse(text: str) -> exp.Select:
    """Read a formula as a selection of one expression."""
    if len(text) > _LONGEST:
        raise _refused("it is too long")
    try:
        statements = sqlglot.parse(f"SELECT {text}", read="duckdb")
    except (SqlglotError, RecursionError):
        raise _refused("it cannot be read") from None
    select = statements[0] if len(statements) == 1 else None
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        raise _refused("it is not one expression")
    if {name for name, part in select.args.items() if part} - {"expressions", "kind"}:
        raise _refused("it is not one expression")
    if max(node.depth for node in select.walk()) > _NESTING:
        raise _refused("it is nested too deeply")
    return select


def _value_of(literal: exp.Literal) -> str | float:
    if literal.is_string:
        return str(literal.this)
    number = float(str(literal.this))
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _refused(why: str) -> ToolFailure:
    return invalid(f"I cannot use that formula: {why}.")
