"""Check the names in model-written Python: imports, undefined names, table columns, and builtins without use."""

import ast
import builtins
from collections.abc import Iterator

from orchestrator.tools.guardrails.verdict import Category, Entities, RejectedCode, find_nearest

REPAIRS = {
    "print": "Return the value instead of printing it.",
    "open": "Files cannot be read or written; take the data as an argument.",
    "input": "User input is unavailable; take the value as an argument.",
    "eval": "Write the expression itself.",
    "exec": "Write the code itself.",
    "compile": "Write the code itself.",
    "__import__": "Write an import statement.",
}
"""Builtins that do nothing useful in the sandbox, or would hide imports, and what to write instead."""


def find_name_faults(tree: ast.Module, allowed: tuple[str, ...]) -> Iterator[RejectedCode]:
    """Yield a rejection for each name that cannot be used. `allowed`: modules that can be imported."""
    bound = _bound_names(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                yield from _import_faults([alias.name for alias in aliases], allowed)
            case ast.ImportFrom(module=module, level=level):
                yield from _import_faults(["." * level + (module or "")], allowed)
            case ast.Name(id=name) if name not in bound:
                yield from _name_faults(node, bound)
            case _:
                pass


def _import_faults(wanted: list[str], allowed: tuple[str, ...]) -> Iterator[RejectedCode]:
    for name in wanted:
        if name not in allowed:
            yield RejectedCode(
                Category.FORBIDDEN_IMPORT,
                f"{name} cannot be imported. Allowed modules: {', '.join(allowed) or 'none'}.",
            )


def _name_faults(node: ast.Name, bound: frozenset[str]) -> Iterator[RejectedCode]:
    name = node.id
    if name in REPAIRS:
        yield RejectedCode(Category.FORBIDDEN_NAME, f"{name} is not allowed. {REPAIRS[name]}")
    elif not hasattr(builtins, name):
        nearest = find_nearest(name, bound)
        hint = f" Did you mean {nearest}?" if nearest else " Make it a parameter, or import it."
        yield RejectedCode(
            Category.FORBIDDEN_NAME, f"{name} on line {node.lineno} is not defined.{hint}", nearest
        )


def _bound_names(tree: ast.AST) -> frozenset[str]:
    """Return all names that the code binds, even if a name is used before it is bound."""
    bound: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=alias):
                bound.add(alias or name)
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
            case _:
                pass
    return frozenset(bound)


def find_unknown_keys(tree: ast.Module, entities: Entities) -> Iterator[RejectedCode]:
    """Reject keys that the code reads but does not write, unless they are names of tables or columns."""
    known = {*entities, *(column for columns in entities.values() for column in columns)}
    written = set(_written_keys(tree))
    for key in _read_keys(tree):
        if key not in known and key not in written:
            nearest = find_nearest(key, known)
            hint = f" Did you mean {nearest!r}?" if nearest else ""
            yield RejectedCode(Category.UNKNOWN_ENTITY, f"Unknown table or column {key!r}.{hint}", nearest)


def _read_keys(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(slice=ast.Constant(value=str(key)), ctx=ast.Load()):
                yield key
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(key)), *_]):
                yield key
            case _:
                pass


def _written_keys(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(slice=ast.Constant(value=str(key)), ctx=ast.Store()):
                yield key
            case ast.Dict(keys=keys):
                yield from (k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str))
            case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
                yield from (k.arg for k in keywords if k.arg)
            case ast.Call(func=ast.Attribute(attr="setdefault"), args=[ast.Constant(value=str(key)), *_]):
                yield key
            case _:
                pass
