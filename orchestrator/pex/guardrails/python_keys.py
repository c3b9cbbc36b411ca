"""Checks the names of tables and columns that Python reads by key, such as ``row["price"]``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.pex.guardrails.nearest import find_nearest
from orchestrator.pex.guardrails.verdict import Category, Entities, Rejected


def find_unknown_keys(tree: ast.Module, entities: Entities) -> Iterator[Rejected]:
    """Keys that are read must be known, unless the code writes them itself."""
    known = {*entities, *(column for columns in entities.values() for column in columns)}
    written = set(_written_keys(tree))
    for key in _read_keys(tree):
        if key not in known and key not in written:
            nearest = find_nearest(key, known)
            hint = f" Did you mean {nearest!r}?" if nearest else ""
            yield Rejected(Category.UNKNOWN_ENTITY, f"There is no table or column {key!r}.{hint}", nearest)


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
