"""Judges Python that a model wrote: one function, few imports, nothing that leads out of itself.

Pure: parses and reads, never runs. Running is the sandbox's business, which trusts nothing of this.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import keyword
import string
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from orchestrator.domain.configuration import Guardrails
from orchestrator.domain.guarding import is_importable
from orchestrator.errors import InvalidInput
from orchestrator.tools.guardrails import python_names as names
from orchestrator.tools.guardrails.python_names import find_unknown_keys
from orchestrator.tools.guardrails.verdict import ApprovedPython, Category, Entities, Rejected, find_nearest


@dataclass(frozen=True, slots=True)
class PythonRules:
    """`allowed_imports`: modules of the standard library; none unless the domain names them.

    `max_depth`: of nested expressions and blocks together.
    """

    allowed_imports: tuple[str, ...] = ()
    max_characters: int = 20_000
    max_depth: int = 60

    def __post_init__(self) -> None:
        for name in self.allowed_imports:
            if not is_importable(name):
                raise InvalidInput(
                    f"Model-written code cannot be allowed to import {name!r}: only harmless modules of "
                    "the standard library can.",
                    field="guardrails.allowed_imports",
                )

    @classmethod
    def from_config(cls, section: Guardrails) -> PythonRules:
        """The rules of a domain, from the section `guardrails` of its configuration."""
        return cls(allowed_imports=section.allowed_imports)


_ALLOWED_NODES: tuple[type[ast.AST], ...] = (
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Expr, ast.Pass),
    *(
        ast.Assign,
        ast.AugAssign,
        ast.Delete,
        ast.For,
        ast.While,
        ast.If,
        ast.Break,
        ast.Continue,
    ),
    *(ast.Raise, ast.Try, ast.ExceptHandler, ast.Assert, ast.Import, ast.ImportFrom, ast.alias),
    *(ast.Match, ast.match_case, ast.MatchValue, ast.MatchSingleton, ast.MatchSequence, ast.MatchMapping),
    *(ast.MatchStar, ast.MatchAs, ast.MatchOr),
    *(ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.Set),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.comprehension, ast.Compare, ast.Call),
    *(
        ast.keyword,
        ast.FormattedValue,
        ast.JoinedStr,
        ast.Constant,
        ast.Attribute,
        ast.Subscript,
        ast.Starred,
    ),
    *(ast.Name, ast.List, ast.Tuple, ast.Slice),
    *(ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop),
)

_SYNTAX_REPAIRS: dict[type[ast.AST], str] = {
    ast.ClassDef: "Classes cannot be defined; use dicts and tuples.",
    ast.AsyncFunctionDef: "Write a plain function with def.",
    ast.With: "There is nothing to open or lock here; leave `with` out.",
    ast.Yield: "Return a list instead of yielding.",
    ast.YieldFrom: "Return a list instead of yielding.",
    ast.Global: "Use local variables only.",
    ast.Nonlocal: "Use local variables only.",
    ast.MatchClass: "Match on values, lists or dicts, not on classes.",
}


def check_python(code: str, entities: Entities | None, rules: PythonRules) -> ApprovedPython | Rejected:
    """Judge one function and write it anew, without comments and annotations."""
    tree = _parse(code, rules)
    if isinstance(tree, Rejected):
        return tree
    function = _find_function(tree)
    if isinstance(function, Rejected):
        return function
    ast.fix_missing_locations(_DropAnnotations().visit(tree))
    rejected = next(_faults(tree, function, entities, rules), None)
    if rejected:
        return rejected
    arguments = function.args
    return ApprovedPython(
        code=ast.unparse(tree),
        function=function.name,
        parameters=tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)),
        imports=frozenset(_imported_modules(tree)),
    )


def _parse(code: str, rules: PythonRules) -> ast.Module | Rejected:
    if len(code) > rules.max_characters:
        return Rejected(
            Category.TOO_LARGE, f"The code has more than {rules.max_characters} characters. Shorten it."
        )
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        if error.msg.startswith(("too many nested", "too many statically")):
            return _too_deep()
        return Rejected(Category.SYNTAX, f"Line {error.lineno} is no valid Python: {error.msg}.")
    except (RecursionError, MemoryError):
        return _too_deep()
    except ValueError as error:
        return Rejected(Category.SYNTAX, f"This is no valid Python: {error}.")
    return _too_deep() if _depth(tree) > rules.max_depth else tree


def _too_deep() -> Rejected:
    return Rejected(Category.TOO_DEEP, "The code is nested too deeply. Use intermediate variables.")


def _depth(tree: ast.AST) -> int:
    """Levels of nodes, counted without recursion."""
    level: list[ast.AST] = [tree]
    depth = 0
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def _find_function(tree: ast.Module) -> ast.FunctionDef | Rejected:
    """The one function; around it only imports and a docstring."""
    definitions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    others = [
        node
        for node in tree.body
        if not isinstance(node, ast.FunctionDef | ast.Import | ast.ImportFrom) and not _is_docstring(node)
    ]
    for node in others:
        if type(node) in _SYNTAX_REPAIRS:
            return _forbidden_syntax(node)
    if len(definitions) != 1 or len(functions) != 1:
        return Rejected(
            Category.NOT_ONE_FUNCTION,
            f"Define exactly one function; there are {len(definitions)}. Write helpers as lambdas or inline.",
        )
    if others:
        return Rejected(
            Category.NOT_ONE_FUNCTION,
            f"Line {others[0].lineno} stands outside the function. Only imports may; move it inside or leave it out.",
        )
    return functions[0]


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _faults(
    tree: ast.Module, function: ast.FunctionDef, entities: Entities | None, rules: PythonRules
) -> Iterator[Rejected]:
    """Everything wrong with it, the worst kinds first for each node."""
    modules = _module_names(tree)
    bound = _bound_names(tree)
    dotted = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if function.decorator_list:
        yield Rejected(Category.FORBIDDEN_SYNTAX, "Decorators are not allowed; leave them out.")
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED_NODES) or getattr(node, "is_async", 0):
            yield _forbidden_syntax(node)
        yield from _identifier_faults(node)
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from _import_faults(node, rules)
            case ast.Attribute():
                yield from _attribute_faults(node, modules)
            case ast.Name(ctx=ast.Load(), id=name) if name in modules and node not in dotted:
                yield Rejected(Category.FORBIDDEN_NAME, f"Use {name} only with a dot, such as {name}.name.")
            case ast.Name():
                yield from _name_faults(node, bound)
            case _:
                pass
    if entities is not None:
        yield from find_unknown_keys(tree, entities)


def _forbidden_syntax(node: ast.AST) -> Rejected:
    line = getattr(node, "lineno", 1)
    repair = _SYNTAX_REPAIRS.get(type(node), "Write it with plain statements.")
    return Rejected(
        Category.FORBIDDEN_SYNTAX, f"{type(node).__name__} in line {line} is not allowed. {repair}"
    )


def _identifier_faults(node: ast.AST) -> Iterator[Rejected]:
    """Names may stand in many fields of many nodes: any with two underscores in front is refused."""
    if isinstance(node, ast.Constant):
        return
    category = Category.FORBIDDEN_ATTRIBUTE if isinstance(node, ast.Attribute) else Category.FORBIDDEN_NAME
    for _, name in ast.iter_fields(node):
        if isinstance(name, str) and name.startswith("__"):
            yield Rejected(category, f"{name} is not allowed: no name may start with two underscores.")


def _import_faults(node: ast.Import | ast.ImportFrom, rules: PythonRules) -> Iterator[Rejected]:
    wanted = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or "."]
    for name in wanted:
        if name not in rules.allowed_imports or (isinstance(node, ast.ImportFrom) and node.level):
            yield Rejected(
                Category.FORBIDDEN_IMPORT,
                f"{name} cannot be imported. Allowed are: {', '.join(rules.allowed_imports) or 'none'}.",
            )
            return
        if isinstance(node, ast.Import) and "." in name:
            yield Rejected(
                Category.FORBIDDEN_IMPORT, f"Write `from {name} import …` with the names you need."
            )
    if isinstance(node, ast.ImportFrom) and node.module in rules.allowed_imports:
        for alias in node.names:
            if alias.name not in public_names(node.module):
                yield Rejected(
                    Category.FORBIDDEN_IMPORT,
                    f"{alias.name} cannot be imported from {node.module}. Import public names one by one.",
                )


def _attribute_faults(node: ast.Attribute, modules: dict[str, str]) -> Iterator[Rejected]:
    name = node.attr
    if name in names.FORBIDDEN_ATTRIBUTES or (name.startswith("_") and name not in names.NAMED_TUPLE_API):
        yield Rejected(Category.FORBIDDEN_ATTRIBUTE, f"The attribute {name} is not allowed.")
    elif isinstance(node.value, ast.Name) and node.value.id in modules:
        module = modules[node.value.id]
        if name not in public_names(module):
            nearest = find_nearest(name, public_names(module))
            yield Rejected(Category.FORBIDDEN_ATTRIBUTE, f"{module} has no public {name}.", nearest)
    elif name == "format":
        yield from _format_faults(node.value)


def _format_faults(receiver: ast.expr) -> Iterator[Rejected]:
    match receiver:
        case ast.Constant(value=str(template)):
            yield from _template_faults(template)
        case _:
            yield Rejected(
                Category.FORBIDDEN_ATTRIBUTE, "format() is allowed on a literal text only; use an f-string."
            )


def _template_faults(template: str) -> Iterator[Rejected]:
    """`"{0.__class__}".format(x)` reads attributes without writing a dot in code."""
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as error:
        yield Rejected(Category.SYNTAX, f"A format text is malformed: {error}.")
        return
    for _, field, specification, _ in pieces:
        if field and ("." in field or "[" in field):
            yield Rejected(
                Category.FORBIDDEN_ATTRIBUTE, f"The format field {{{field}}} is not allowed; use an f-string."
            )
        if specification and "{" in specification:
            yield from _template_faults(specification)


def _name_faults(node: ast.Name, bound: frozenset[str]) -> Iterator[Rejected]:
    name = node.id
    if name in bound or name in names.SAFE_BUILTINS or name.startswith("__"):
        return
    if hasattr(builtins, name) or keyword.issoftkeyword(name):
        repair = names.REPAIRS.get(name, "Do without it.")
        yield Rejected(Category.FORBIDDEN_NAME, f"{name} is not allowed. {repair}")
        return
    nearest = find_nearest(name, bound | names.SAFE_BUILTINS)
    hint = f" Did you mean {nearest}?" if nearest else " Make it a parameter, or import it."
    yield Rejected(Category.FORBIDDEN_NAME, f"{name} in line {node.lineno} is not defined.{hint}", nearest)


def _module_names(tree: ast.AST) -> dict[str, str]:
    """What each imported module is called in the code."""
    return {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }


def _imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _bound_names(tree: ast.AST) -> frozenset[str]:
    """Every name the code binds anywhere; whether it is bound in time shows when it runs."""
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


class _DropAnnotations(ast.NodeTransformer):
    """They would be evaluated, and name what is not imported."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        plain = ast.Pass() if node.value is None else ast.Assign(targets=[node.target], value=node.value)
        return self.generic_visit(ast.copy_location(plain, node))


@lru_cache(maxsize=64)
def public_names(module: str) -> frozenset[str]:
    """What a module of the allow-list offers; the modules it has imported itself are not part of it."""
    loaded = importlib.import_module(module)
    offered: list[str] = getattr(loaded, "__all__", None) or [name for name in dir(loaded) if name[0] != "_"]
    return frozenset(name for name in offered if not isinstance(getattr(loaded, name), types.ModuleType))
