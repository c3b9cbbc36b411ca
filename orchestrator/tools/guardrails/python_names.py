"""Check the names in model-written Python: imports, attributes, builtins, table columns.

Names are allowlisted: a name that is neither listed nor bound by the code is rejected.
"""

import ast
import builtins
import importlib
import keyword
import string
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from orchestrator.tools.guardrails.verdict import Category, Entities, RejectedCode, find_nearest

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
# Attributes that lead from a harmless object to frames, code objects, classes or formatted attribute lookups.
FORBIDDEN_ATTRIBUTES = frozenset(_FORBIDDEN_ATTRIBUTES.split())

NAMED_TUPLE_API = frozenset({"_asdict", "_fields", "_make", "_replace"})

REPAIRS = {
    "print": "Return the value instead of printing it.",
    "open": "Files cannot be read or written; take the data as an argument.",
    "input": "User input is unavailable; take the value as an argument.",
    "eval": "Write the expression itself.",
    "exec": "Write the code itself.",
    "compile": "Write the code itself.",
    "getattr": "Write the attribute with a dot, or use a dict.",
    "setattr": "Use a dict.",
    "type": "Use isinstance().",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The names in a function.

    Attributes:
        modules: imported modules by local name.
        bound: all names that the code binds.
        dotted: the expressions before a dot.
        allowed: modules that can be imported.
    """

    modules: dict[str, str]
    bound: frozenset[str]
    dotted: frozenset[ast.expr]
    allowed: tuple[str, ...]


def read_scope(tree: ast.Module, allowed: tuple[str, ...]) -> Scope:
    dotted = frozenset(node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return Scope(_module_names(tree), _bound_names(tree), dotted, allowed)


def find_name_faults(node: ast.AST, scope: Scope) -> Iterator[RejectedCode]:
    """Yield a rejection for each forbidden name in one node."""
    yield from _identifier_faults(node)
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from _import_faults(node, scope.allowed)
        case ast.Attribute():
            yield from _attribute_faults(node, scope.modules)
        case ast.Name(ctx=ast.Load(), id=name) if name in scope.modules and node not in scope.dotted:
            yield RejectedCode(Category.FORBIDDEN_NAME, f"Use {name} only with a dot, such as {name}.name.")
        case ast.Name():
            yield from _name_faults(node, scope.bound)
        case _:
            pass


def _identifier_faults(node: ast.AST) -> Iterator[RejectedCode]:
    """Reject names with two leading underscores in any field of a node."""
    if isinstance(node, ast.Constant):
        return
    category = Category.FORBIDDEN_ATTRIBUTE if isinstance(node, ast.Attribute) else Category.FORBIDDEN_NAME
    for _, name in ast.iter_fields(node):
        if isinstance(name, str) and name.startswith("__"):
            yield RejectedCode(category, f"{name} is not allowed: names must not start with two underscores.")


def _import_faults(node: ast.Import | ast.ImportFrom, allowed: tuple[str, ...]) -> Iterator[RejectedCode]:
    wanted = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or "."]
    for name in wanted:
        if name not in allowed or (isinstance(node, ast.ImportFrom) and node.level):
            yield RejectedCode(
                Category.FORBIDDEN_IMPORT,
                f"{name} cannot be imported. Allowed modules: {', '.join(allowed) or 'none'}.",
            )
            return
        if isinstance(node, ast.Import) and "." in name:
            yield RejectedCode(
                Category.FORBIDDEN_IMPORT, f"Write `from {name} import …` with the names you need."
            )
    if isinstance(node, ast.ImportFrom) and node.module in allowed:
        for alias in node.names:
            if alias.name not in public_names(node.module):
                yield RejectedCode(
                    Category.FORBIDDEN_IMPORT,
                    f"{alias.name} cannot be imported from {node.module}. Import public names one by one.",
                )


def _attribute_faults(node: ast.Attribute, modules: dict[str, str]) -> Iterator[RejectedCode]:
    name = node.attr
    if name in FORBIDDEN_ATTRIBUTES or (name.startswith("_") and name not in NAMED_TUPLE_API):
        yield RejectedCode(Category.FORBIDDEN_ATTRIBUTE, f"The attribute {name} is not allowed.")
    elif isinstance(node.value, ast.Name) and node.value.id in modules:
        module = modules[node.value.id]
        if name not in public_names(module):
            nearest = find_nearest(name, public_names(module))
            yield RejectedCode(Category.FORBIDDEN_ATTRIBUTE, f"{module} has no public {name}.", nearest)
    elif name == "format":
        yield from _format_faults(node.value)


def _format_faults(receiver: ast.expr) -> Iterator[RejectedCode]:
    match receiver:
        case ast.Constant(value=str(template)):
            yield from _template_faults(template)
        case _:
            yield RejectedCode(
                Category.FORBIDDEN_ATTRIBUTE, "format() is only allowed on string literals; use an f-string."
            )


def _template_faults(template: str) -> Iterator[RejectedCode]:
    """Reject attribute access in format templates, such as `"{0.__class__}".format(x)`."""
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as error:
        yield RejectedCode(Category.SYNTAX, f"A format string is malformed: {error}.")
        return
    for _, field, specification, _ in pieces:
        if field and ("." in field or "[" in field):
            yield RejectedCode(
                Category.FORBIDDEN_ATTRIBUTE, f"The format field {{{field}}} is not allowed; use an f-string."
            )
        if specification and "{" in specification:
            yield from _template_faults(specification)


def _name_faults(node: ast.Name, bound: frozenset[str]) -> Iterator[RejectedCode]:
    name = node.id
    if name in bound or name in SAFE_BUILTINS or name.startswith("__"):
        return
    if hasattr(builtins, name) or keyword.issoftkeyword(name):
        repair = REPAIRS.get(name, "Omit it.")
        yield RejectedCode(Category.FORBIDDEN_NAME, f"{name} is not allowed. {repair}")
        return
    nearest = find_nearest(name, bound | SAFE_BUILTINS)
    hint = f" Did you mean {nearest}?" if nearest else " Make it a parameter, or import it."
    yield RejectedCode(
        Category.FORBIDDEN_NAME, f"{name} on line {node.lineno} is not defined.{hint}", nearest
    )


def _module_names(tree: ast.AST) -> dict[str, str]:
    return {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }


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


@lru_cache(maxsize=64)
def public_names(module: str) -> frozenset[str]:
    """Return the public names of an allowlisted module, without the modules that it imports."""
    loaded = importlib.import_module(module)
    offered: list[str] = getattr(loaded, "__all__", None) or [name for name in dir(loaded) if name[0] != "_"]
    return frozenset(name for name in offered if not isinstance(getattr(loaded, name), types.ModuleType))


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
