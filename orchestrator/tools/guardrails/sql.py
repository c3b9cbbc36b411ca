"""Check model-written SQL: one statement of a permitted kind, on known tables.

The checks parse the SQL and never run it. Approved SQL is regenerated from its parse tree and checked again,
so that exactly the checked text runs. The process that runs the SQL is another barrier
(`ports.sandbox.SqlSandbox`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

from orchestrator.domain.guarding import READ_ONLY, Statement
from orchestrator.tools.guardrails import sql_names as functions
from orchestrator.tools.guardrails.sql_names import find_unknown_name
from orchestrator.tools.guardrails.verdict import LONGEST_CODE, ApprovedCode, Category, Entities, RejectedCode

_DIALECT = DuckDB()
MAX_TOKENS = 4_000
MAX_DEPTH = 80
"""Maximum depth of the parse tree."""
MAX_BRACKETS = 60  # nesting depth; the parser recurses for each bracket
REWRITES = 4  # maximum number of attempts to reach a text that no longer changes
_PLAIN_NAME = re.compile(r"""[^\x00-\x1f"'`;$\\]*""")
_ODD = frozenset(kind for kind in TokenType if kind.name.endswith(("_STRING", "PARAMETER", "PLACEHOLDER")))


_FIRST_WORDS: dict[str, Statement] = {
    **dict.fromkeys(("SELECT", "WITH", "FROM", "VALUES", "("), Statement.SELECT),
    **dict.fromkeys(("DESCRIBE", "SUMMARIZE", "PIVOT", "UNPIVOT"), Statement.SELECT),
    "INSERT": Statement.INSERT,
    "UPDATE": Statement.UPDATE,
    "DELETE": Statement.DELETE,
    "CREATE": Statement.CREATE_TABLE,
    "ALTER": Statement.ALTER_TABLE,
    "DROP": Statement.DROP_TABLE,
}

_CHANGING_WORDS = frozenset({"TRUNCATE", "MERGE", "REPLACE", "UPSERT", "COMMENT"})

_ROOTS: dict[type[exp.Expr], Statement] = {
    **dict.fromkeys((exp.Select, exp.SetOperation, exp.Union, exp.Intersect, exp.Except), Statement.SELECT),
    **dict.fromkeys((exp.Subquery, exp.Values, exp.Describe, exp.Summarize, exp.Pivot), Statement.SELECT),
    exp.Insert: Statement.INSERT,
    exp.Update: Statement.UPDATE,
    exp.Delete: Statement.DELETE,
    exp.Create: Statement.CREATE_TABLE,
    exp.Alter: Statement.ALTER_TABLE,
    exp.Drop: Statement.DROP_TABLE,
}

_FORBIDDEN = """
Command Attach Detach Copy Set SetItem Use Pragma Install Transaction Commit Rollback Kill LoadData Export Grant
    Into Lock Analyze Cache Uncache Refresh SessionParameter Show Merge
    """
_NEVER: tuple[type[exp.Expr], ...] = tuple(getattr(exp, name) for name in _FORBIDDEN.split())

_CHANGING = (
    exp.Insert,
    exp.Update,
    exp.Delete,
    exp.Create,
    exp.Alter,
    exp.Drop,
    exp.TruncateTable,
    exp.Merge,
)


def check_sql(
    code: str, entities: Entities | None, statements: frozenset[Statement] = READ_ONLY
) -> ApprovedCode | RejectedCode:
    """Check one statement. Approve only a text that parsing and regenerating leaves unchanged.

    `statements`: permitted kinds of statements.
    """
    for _ in range(REWRITES):
        judged = _judge(code, entities, statements)
        if isinstance(judged, RejectedCode):
            return judged
        if judged.code == code and all(map(_is_plain, _DIALECT.tokenize(code))):
            return judged
        code = judged.code
    return RejectedCode(
        Category.SYNTAX,
        "The parsed statement can't be written back unchanged. Use names made of letters and digits, common types, and "
        "string literals in single quotes.",
    )


def rename_in_sql(code: str, old: str, new: str) -> str:
    """Return the statement with a name replaced, except in string literals and comments."""
    named = {TokenType.IDENTIFIER, TokenType.VAR}
    for token in reversed(_DIALECT.tokenize(code)):
        if token.token_type in named and token.text == old:
            code = f"{code[: token.start]}{new}{code[token.end + 1 :]}"
    return code


def _judge(
    code: str, entities: Entities | None, statements: frozenset[Statement]
) -> ApprovedCode | RejectedCode:
    """Check a text and regenerate it, without comments."""
    tokens = _read_tokens(code, statements)
    if isinstance(tokens, RejectedCode):
        return tokens
    tree = _parse(tokens, code)
    if isinstance(tree, RejectedCode):
        return tree
    rejected = next(_faults(tree, statements), None) or find_unknown_name(tree, entities)
    if rejected:
        return rejected
    try:
        text = tree.sql(dialect=_DIALECT, comments=False, unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, RecursionError) as error:
        return RejectedCode(Category.SYNTAX, f"The statement cannot be written for duckdb: {error}.")
    return ApprovedCode(text, columns=tuple(tree.named_selects) if isinstance(tree, exp.Query) else ())


def _is_plain(token: Token) -> bool:
    """Return whether a token is unambiguous: no unusual name characters, special strings or placeholders."""
    if token.token_type is TokenType.STRING:
        return True
    named = token.token_type in {TokenType.IDENTIFIER, TokenType.VAR}
    return token.token_type not in _ODD and (not named or _PLAIN_NAME.fullmatch(token.text) is not None)


def _read_tokens(code: str, statements: frozenset[Statement]) -> list[Token] | RejectedCode:
    """Return the tokens without final semicolons, or a rejection if a check before parsing fails."""
    if len(code) > LONGEST_CODE:
        return RejectedCode(Category.TOO_LARGE, f"The statement has more than {LONGEST_CODE} characters.")
    try:
        tokens = _DIALECT.tokenize(code)
    except TokenError as error:
        return RejectedCode(Category.SYNTAX, f"The statement cannot be parsed: {_first_line(error)}.")
    if len(tokens) > MAX_TOKENS:
        return RejectedCode(Category.TOO_LARGE, f"The statement has more than {MAX_TOKENS} tokens.")
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        return RejectedCode(Category.EMPTY, "The answer contains no statement.")
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        return RejectedCode(
            Category.NOT_ONE_STATEMENT, "Write exactly one statement, without a semicolon inside."
        )
    if _bracket_depth(tokens) > MAX_BRACKETS:
        return _too_deep()
    if run_together := next(_find_run_together(tokens), None):
        return RejectedCode(
            Category.SYNTAX,
            f"In {run_together[:40]!r} a name follows a number without a space: write numbers in decimal, and names "
            "after a space.",
        )
    return _check_first_word(tokens, statements)


def _find_run_together(tokens: list[Token]) -> Iterator[str]:
    """Yield numbers that are directly followed by a name: the database reads `0x1` as `0 AS x1`."""
    for number, name in pairwise(tokens):
        if (
            number.token_type is TokenType.NUMBER
            and name.start == number.end + 1
            and name.text[0].isidentifier()
        ):
            yield number.text + name.text


def _check_first_word(tokens: list[Token], statements: frozenset[Statement]) -> list[Token] | RejectedCode:
    word = tokens[0].text.upper()
    statement = _FIRST_WORDS.get(word)
    if statement is None and word not in _CHANGING_WORDS:
        return RejectedCode(
            Category.FORBIDDEN_STATEMENT, f"A statement cannot start with {word[:40]}. {_taken(statements)}"
        )
    if statement not in statements:
        return _not_taken(word, statements)
    return tokens


def _not_taken(what: str, statements: frozenset[Statement]) -> RejectedCode:
    return RejectedCode(Category.NOT_READ_ONLY, f"{what} is not allowed here. {_taken(statements)}")


def _taken(statements: frozenset[Statement]) -> str:
    kinds = ", ".join(sorted(kind.value.replace("_", " ").upper() for kind in statements))
    return f"Write one statement of these types: {kinds}."


def _bracket_depth(tokens: list[Token]) -> int:
    depth = deepest = 0
    for token in tokens:
        if token.token_type in {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}:
            depth += 1
            deepest = max(deepest, depth)
        elif token.token_type in {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}:
            depth -= 1
    return deepest


def _too_deep() -> RejectedCode:
    return RejectedCode(Category.TOO_DEEP, "The statement is nested too deeply. Use WITH to name its parts.")


def _parse(tokens: list[Token], code: str) -> exp.Expr | RejectedCode:
    try:
        trees = parse(tokens, code)
    except (RecursionError, TooMuchWork):
        return _too_deep()
    except (ParseError, TokenError) as error:
        return RejectedCode(Category.SYNTAX, f"This is not valid SQL: {_first_line(error)}.")
    if len(trees) != 1:
        return RejectedCode(Category.NOT_ONE_STATEMENT, "Write exactly one statement.")
    return _too_deep() if _depth(trees[0]) > MAX_DEPTH else trees[0]


def _first_line(error: SqlglotError) -> str:
    return str(error).split("\n", 1)[0].rstrip(".")


def _depth(tree: exp.Expr) -> int:
    level = [tree]
    depth = 0
    while level:
        depth += 1
        level = [child for node in level for child in node.iter_expressions()]
    return depth


def _faults(tree: exp.Expr, statements: frozenset[Statement]) -> Iterator[RejectedCode]:
    statement = _ROOTS.get(type(tree))
    if statement is None:
        yield RejectedCode(Category.FORBIDDEN_STATEMENT, f"This statement can't be run. {_taken(statements)}")
    elif statement not in statements:
        yield _not_taken(statement.value.replace("_", " ").upper(), statements)
    if (
        isinstance(tree, exp.Create | exp.Drop | exp.Alter)
        and str(tree.args.get("kind", "")).upper() != "TABLE"
    ):
        yield RejectedCode(Category.FORBIDDEN_STATEMENT, "Only tables can be created, changed or dropped.")
    for node in tree.walk():
        if isinstance(node, _NEVER):
            yield RejectedCode(
                Category.FORBIDDEN_STATEMENT, f"{node.key.upper()} is not allowed. {_taken(statements)}"
            )
        elif isinstance(node, _CHANGING) and node is not tree:
            yield _not_taken(f"{node.key.upper()} inside a statement", statements)
        elif isinstance(node, exp.Table) or _reads_text(node):
            yield from _source_faults(node.this)
        elif isinstance(node, exp.Func):
            yield from _function_faults(node)


def _reads_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Summarize | exp.Describe | exp.Pivot) and isinstance(node.this, exp.Literal)


def _source_faults(source: exp.Expr) -> Iterator[RejectedCode]:
    """Reject functions and strings used as tables, except permitted table functions."""
    if isinstance(source, exp.Identifier | exp.Alias):
        return
    name = _function_name(source) if isinstance(source, exp.Func) else source.key
    if name not in functions.TABLE_FUNCTIONS:
        yield RejectedCode(
            Category.FORBIDDEN_SOURCE,
            f"{name} is not allowed as a source. Read from the tables, or from "
            f"{', '.join(sorted(functions.TABLE_FUNCTIONS))}.",
        )


def _function_faults(function: exp.Func) -> Iterator[RejectedCode]:
    name = _function_name(function)
    known = not isinstance(function, exp.Anonymous | exp.AnonymousAggFunc)
    if name in functions.ALLOWED | functions.TABLE_FUNCTIONS or (known and name not in functions.REFUSED):
        return
    if any(word in name for word in functions.FILE_FUNCTION_WORDS):
        yield RejectedCode(
            Category.FORBIDDEN_SOURCE, f"{name} is not allowed: only the known tables can be read."
        )
        return
    yield RejectedCode(
        Category.FORBIDDEN_FUNCTION,
        f"The function {name} is not allowed. Use common functions and operators.",
    )


def _function_name(function: exp.Expr) -> str:
    if isinstance(function, exp.Anonymous | exp.AnonymousAggFunc):
        return str(function.name or function.this).lower()
    return function.sql_name().lower() if isinstance(function, exp.Func) else function.key


STEPS_PER_TOKEN = 12  # ordinary statements need up to three steps; a step takes about ten microseconds
STEPS_AT_LEAST = 500


class TooMuchWork(Exception):
    """Raised if the parser exceeds its limit of steps."""


def parse(tokens: list[Token], code: str) -> list[exp.Expr]:
    """Parse the statements in a text, with a limited number of steps.

    Raises:
        ParseError: if the SQL is invalid.
        RecursionError: if the SQL is nested too deeply for the interpreter.
        TooMuchWork: if parsing exceeds the limit.
    """
    parser = BoundedParser(dialect=_DIALECT, error_level=ErrorLevel.IMMEDIATE)
    parser.steps_left = STEPS_AT_LEAST + STEPS_PER_TOKEN * len(tokens)
    return [tree for tree in parser.parse(tokens, code) if tree is not None]


class BoundedParser(DuckDBParser):
    """A parser that raises TooMuchWork after `steps_left` steps, including backtracking."""

    steps_left: int

    def _advance(self, times: int = 1) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise TooMuchWork
        super()._advance(times)
