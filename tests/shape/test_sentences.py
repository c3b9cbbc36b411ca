"""RS-3: code outside RES uses only codes of messages, and RES has a text for each code with the same variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jinja2.meta import find_undeclared_variables

from orchestrator.res.languages import load_sayings
from tests.shape.sources import name_of, python_files, tree_of
from tests.wording import parse_template

ROOMS: Final = ("dialogue", "nlu", "plans", "pex", "agent", "memory", "tools", "domain", "adapters/tools")
TELLING: Final = frozenset(
    {
        *("Rejected", "SlotProblem", "Mention", "Reading", "Reference", "Understanding"),
        *("ToolFailure", "ToolError", "Failed", "Failure", "Partial", "Option", "Cause", "notice"),
    }
)
"""Calls whose arguments are displayed to users."""
NOT_TOLD: Final = frozenset({"text", "check", "category", "pattern"})
"""Keyword arguments with the user's own words, or names."""


def rooms() -> Iterator[Path]:
    yield from python_files(*(f"orchestrator/{room}" for room in ROOMS))


def find_sentences(function: ast.AST) -> Iterator[ast.expr]:
    """Yield the texts of several words that a function passes to such a call, directly or by variable."""
    named: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named.setdefault(node.targets[0].id, []).append(node.value)
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and name_called(node) in TELLING:
            given = [*node.args, *(one.value for one in node.keywords if one.arg not in NOT_TOLD)]
            for value in given:
                held = named.get(value.id, []) if isinstance(value, ast.Name) else [value]
                yield from (text for one in held for text in texts_of(one))


def texts_of(value: ast.expr) -> Iterator[ast.expr]:
    match value:
        case ast.Constant(value=str(text)) if " " in text.strip():
            yield value
        case ast.JoinedStr(values=parts) if any(
            isinstance(one, ast.Constant) and " " in str(one.value).strip() for one in parts
        ):
            yield value
        case ast.IfExp(body=body, orelse=other):
            yield from (*texts_of(body), *texts_of(other))
        case ast.BoolOp(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
            yield from (text for one in values for text in texts_of(one))
        case _:
            pass


def name_called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def test_sentences_for_users_are_made_in_res() -> None:
    found = {
        f"{name_of(path)}:{text.lineno}"
        for path in rooms()
        for function in ast.walk(tree_of(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for text in find_sentences(function)
    }

    assert found == set(), "Use `say(code, …)`, and give the code a sentence in res/templates/*/sayings.toml."


def test_a_planted_sentence_is_found() -> None:
    told = ast.parse("def f():\n why = f'The {x} is wrong.'\n return Rejected(why or say('no'))")
    named = ast.parse("def f():\n why = f'The {x} is wrong.'\n return Rejected(why)")

    assert len(list(find_sentences(named))) == 1
    assert list(find_sentences(ast.parse("Rejected(say('not_text', slot='a b'))"))) == []
    assert list(find_sentences(told)) == []


def find_sayings() -> Iterator[tuple[str, str, set[str] | None]]:
    """Yield each code, its place, and its variables, or None if they are not listed."""
    for path in python_files("orchestrator"):
        for node in ast.walk(tree_of(path)):
            match node:
                case ast.Call(
                    func=ast.Name(id="say" | "reject" as name), args=[ast.Constant(value=str(code)), *_]
                ):
                    names = {one.arg for one in node.keywords if one.arg is not None}
                    is_listed = all(one.arg is not None for one in node.keywords)
                    names |= {"slot"} if name == "reject" else set()
                    yield code, f"{name_of(path)}:{node.lineno}", names if is_listed else None
                case _:
                    pass


def test_every_saying_has_a_sentence_with_its_variables() -> None:
    sentences = load_sayings()

    for code, place, given in find_sayings():
        assert code in sentences, place
        needed = find_undeclared_variables(parse_template(sentences[code]))
        assert given is None or given - {"slot"} == needed - {"slot"}, place


def test_every_sentence_is_said() -> None:
    texts = {
        node.value
        for path in python_files("orchestrator")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }

    assert load_sayings().keys() - texts == set()
