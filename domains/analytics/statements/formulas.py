"""Read formulas for new columns with a real parser, and rebuild them from an allowed few operations (PX-10)."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.expressions.core import Expression

from domains.analytics.statements.parts import Values, invalid, quote
from domains.analytics.store.sheet import Sheet
from orchestrator import ToolFailure

_LONGEST = 300
_NAME = re.compile(r"[A-Za-z]\w{0,59}")
_BINARY: dict[type[Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "||",
    exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.EQ: "=", exp.NEQ: "<>",
    exp.And: "AND", exp.Or: "OR",
}  # fmt: skip
_FUNCTIONS: dict[type[Expression], str] = {
    exp.Abs: "abs", exp.Round: "round", exp.Floor: "floor", exp.Ceil: "ceil", exp.Sqrt: "sqrt", exp.Ln: "ln",
    exp.Upper: "upper", exp.Lower: "lower", exp.Length: "length", exp.Trim: "trim",
    exp.Year: "year", exp.Month: "month", exp.Day: "day",
    exp.Coalesce: "coalesce", exp.Concat: "concat", exp.Greatest: "greatest", exp.Least: "least",
}  # fmt: skip
FUNCTIONS = sorted(_FUNCTIONS.values())
_NESTING = 12


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
    """Write a formula over the columns of a table as a part of a statement.

    Raises:
        ToolFailure: not_found for an unknown column, validation_error for anything but plain arithmetic.
    """
    if len(text) > _LONGEST:
        raise _refused("it is too long")
    try:
        statements = sqlglot.parse(f"SELECT {text}", read="duckdb")
    except (SqlglotError, RecursionError):
        raise _refused("it cannot be read") from None
    parsed = statements[0] if len(statements) == 1 else None
    if not isinstance(parsed, exp.Select) or len(parsed.expressions) != 1:
        raise _refused("it is not one expression")
    parts = {name for name, part in parsed.args.items() if part}
    if parts - {"expressions", "kind"}:
        raise _refused("it is not one expression")
    return _write(parsed.expressions[0], sheet, values, 0)


def _write(node: Expression, sheet: Sheet, values: Values, depth: int) -> str:
    if depth > _NESTING:
        raise _refused("it is nested too deeply")
    if isinstance(node, exp.Column):
        return _write_column(node, sheet)
    if isinstance(node, exp.Literal):
        return _write_literal(node, values)
    if isinstance(node, exp.Paren):
        return f"({_write(node.this, sheet, values, depth + 1)})"
    if isinstance(node, exp.Neg):
        return f"-({_write(node.this, sheet, values, depth + 1)})"
    if type(node) in _BINARY:
        left = _write(node.this, sheet, values, depth + 1)
        right = _write(node.expression, sheet, values, depth + 1)
        if isinstance(node, exp.Div):
            right = f"nullif({right}, 0)"
        return f"({left} {_BINARY[type(node)]} {right})"
    if type(node) in _FUNCTIONS:
        return _write_function(node, sheet, values, depth)
    raise _refused(f"{node.key} is not allowed; use + - * / and {', '.join(FUNCTIONS)}")


def _write_column(node: exp.Column, sheet: Sheet) -> str:
    if node.table or isinstance(node.this, exp.Star):
        raise _refused("name columns alone")
    return quote(sheet.column(node.name).name)


def _write_literal(node: exp.Literal, values: Values) -> str:
    if node.is_string:
        return values.add(str(node.this))
    number = float(str(node.this))
    return values.add(int(number) if number.is_integer() and abs(number) < 2**53 else number)


def _write_function(node: Expression, sheet: Sheet, values: Values, depth: int) -> str:
    arguments = [part for part in (node.args.get("this"), node.args.get("decimals")) if part is not None]
    arguments += node.args.get("expressions") or []
    known = {"this", "decimals", "expressions", "safe", "coalesce", "ignore_nulls"}
    if any(part for name, part in node.args.items() if name not in known) or not arguments:
        raise _refused("one of its functions is used in a way that I do not know")
    written = ", ".join(_write(part, sheet, values, depth + 1) for part in arguments)
    return f"{_FUNCTIONS[type(node)]}({written})"


def _refused(why: str) -> ToolFailure:
    return invalid(f"I cannot use that formula: {why}.")
