"""Turn a function into code that Monty runs: with its call, its modules, and without idioms that Monty lacks."""

import ast
import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

STATISTICS = Path(__file__).with_name("monty_statistics.py")
ARGUMENTS = "__arguments"
TAKE_KEY = frozenset({"max", "min", "sorted", "sort", "groupby"})
"""Functions and methods with a parameter `key`, which is a function."""
# Imported before the call, so that the code cannot replace them.
CALL = """
from json import dumps as __dumps, loads as __loads
__dumps({function}(**__loads({arguments})), allow_nan=False)[:{most}]"""


class Forbidden(Exception):
    """The code imports a module that this run doesn't permit."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Code for Monty.

    Attributes:
        library: code to run first, or empty.
        code: the function and its call, whose value is the result as JSON.
        lines: number of lines of the function.
        arguments: the variable that the code reads its arguments from, as JSON.
    """

    library: str
    code: str
    lines: int
    arguments: str = ARGUMENTS


def prepare(source: str, imports: frozenset[str], output_bytes: int) -> Prepared:
    """Return the code for one call.

    `output_bytes`: maximum length of the result. A longer result is cut off one character after it.

    Raises: Forbidden if it imports other modules than `imports`. SyntaxError, ValueError, RecursionError or
        MemoryError if the source cannot be parsed, or doesn't define exactly one function.
    """
    tree = ast.parse(source)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if len(functions) != 1:
        raise ValueError("it does not define exactly one function")
    modules = set(_imported_modules(tree))
    if foreign := sorted(modules - imports):
        raise Forbidden(f"The code tried to import {foreign[0]}.")
    code = ast.unparse(_Adapt().visit(tree))
    call = CALL.format(function=functions[0], arguments=ARGUMENTS, most=output_bytes + 1)
    return Prepared(_statistics() if "statistics" in modules else "", code + call, code.count("\n") + 1)


def _imported_modules(tree: ast.AST) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append("." * node.level + (node.module or ""))
    return found


@cache
def _statistics() -> str:
    """Return code that defines `__statistics`. Other code cannot replace its names, which are local to a function."""
    source = STATISTICS.read_text("utf-8")
    names = re.findall(r"^def ([a-z]\w*)", source, re.MULTILINE)
    parts = [source, "class Module: pass", "module = Module()", "module.StatisticsError = ValueError"]
    body = "\n".join([*parts, *(f"module.{name} = {name}" for name in names), "return module"])
    return f"def __library():\n{textwrap.indent(body, '    ')}\n__statistics = __library()"


class _Adapt(ast.NodeTransformer):
    """A transformer that writes some common idioms in a way that Monty supports.

    - `statistics` becomes a variable, because Monty has no such module.
    - `next(x for …)` gets an `iter()`, because generator expressions are lists in Monty.
    - `key=d.get` becomes a lambda, because methods are not values in Monty.
    """

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [
            _assign(alias.asname or alias.name, ast.Name("__statistics", ast.Load()))
            if alias.name == "statistics"
            else ast.Import([alias])
            for alias in node.names
        ]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | list[ast.stmt]:
        if node.module != "statistics":
            return node
        module = ast.Name("__statistics", ast.Load())
        return [
            _assign(alias.asname or alias.name, ast.Attribute(module, alias.name, ast.Load()))
            for alias in node.names
        ]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="next"), args=[ast.GeneratorExp() as items, *rest]):
                node.args = [ast.Call(ast.Name("iter", ast.Load()), [items], []), *rest]
            case ast.Call(func=ast.Name(id="map" | "filter"), args=[ast.Attribute() as method, items]):
                node.args = [_as_lambda(method), items]
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in TAKE_KEY:
                for keyword in node.keywords:
                    if keyword.arg == "key" and isinstance(keyword.value, ast.Attribute):
                        keyword.value = _as_lambda(keyword.value)
            case _:
                pass
        return node


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value, lineno=0)


def _as_lambda(method: ast.Attribute) -> ast.expr:
    """Return `lambda item: d.get(item)` for `d.get`, and `lambda item: item.lower()` for `str.lower`."""
    item = ast.Name("__item", ast.Load())
    if isinstance(method.value, ast.Name) and method.value.id == "str":
        call = ast.Call(ast.Attribute(item, method.attr, ast.Load()), [], [])
    else:
        call = ast.Call(method, [item], [])
    parameters = ast.arguments(
        posonlyargs=[], args=[ast.arg("__item")], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    return ast.Lambda(parameters, call)
