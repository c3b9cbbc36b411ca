"""The names that guarded Python may and may not use: data, no logic."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.tools.guardrails.verdict import Category, Entities, Rejected, find_nearest

_SAFE_BUILTINS = """
abs all any ascii bin bool bytes chr complex dict divmod enumerate filter float format frozenset hash hex
    int isinstance issubclass iter len list map max min next oct ord pow range repr reversed round set slice
    sorted str sum tuple zip callable
    Exception ArithmeticError AssertionError AttributeError IndexError KeyError LookupError NameError
    NotImplementedError OverflowError RuntimeError StopIteration TypeError ValueError ZeroDivisionError
    """
SAFE_BUILTINS = frozenset(_SAFE_BUILTINS.split())

_FORBIDDEN_ATTRIBUTES = """
ag_await ag_code ag_frame ag_running cr_await cr_code cr_frame cr_origin cr_running f_back f_builtins
    f_code f_globals f_lasti f_lineno f_locals f_trace format_map func_code func_globals gi_code gi_frame
    gi_running gi_yieldfrom mro tb_frame tb_lasti tb_lineno tb_next with_traceback
    """
FORBIDDEN_ATTRIBUTES = frozenset(_FORBIDDEN_ATTRIBUTES.split())
"""Ways from a harmless object to frames, code, classes and formatted attribute look-ups."""

NAMED_TUPLE_API = frozenset({"_asdict", "_fields", "_make", "_replace"})

REPAIRS = {
    "print": "Return the value instead of printing it.",
    "open": "Files cannot be read or written; take the data as an argument.",
    "input": "Nobody can be asked; take the value as an argument.",
    "eval": "Write the expression itself.",
    "exec": "Write the code itself.",
    "compile": "Write the code itself.",
    "getattr": "Write the attribute with a dot, or use a dict.",
    "setattr": "Use a dict.",
    "type": "Use isinstance().",
}


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
