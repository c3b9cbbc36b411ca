"""Check model-written Python: one function, few imports, known names.

The checks parse the code and never run it. They help the model to write code that works. The sandbox, which runs the
code, does not rely on them for security.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orchestrator.tools.guardrails.python_names import find_name_faults, find_unknown_keys
from orchestrator.tools.guardrails.verdict import LONGEST_CODE, ApprovedCode, Category, Entities, RejectedCode

MAX_DEPTH = 60
"""Maximum depth of the syntax tree."""

_SYNTAX_REPAIRS: dict[type[ast.AST], str] = {
    ast.ClassDef: "Classes cannot be defined; use dicts and tuples.",
    ast.AsyncFunctionDef: "Write a plain function with def.",
    ast.Yield: "Return a list instead of yielding.",
    ast.YieldFrom: "Return a list instead of yielding.",
}


def check_python(
    code: str, entities: Entities | None, allowed_imports: tuple[str, ...]
) -> ApprovedCode | RejectedCode:
    """Check one function and regenerate its code, without comments or annotations.

    `allowed_imports`: standard-library modules that the code can import.
    """
    tree = _parse(code)
    if isinstance(tree, RejectedCode):
        return tree
    function = _find_function(tree)
    if isinstance(function, RejectedCode):
        return function
    ast.fix_missing_locations(_DropAnnotations().visit(tree))
    rejected = next(_faults(tree, entities, allowed_imports), None)
    if rejected:
        return rejected
    try:
        written = ast.unparse(tree)
    except ValueError:  # too many digits
        return RejectedCode(
            Category.TOO_LARGE, "The code contains a number with too many digits. Compute it instead."
        )
    return ApprovedCode(written, imports=frozenset(_imported_modules(tree)))


def _parse(code: str) -> ast.Module | RejectedCode:
    if len(code) > LONGEST_CODE:
        return RejectedCode(
            Category.TOO_LARGE, f"The code has more than {LONGEST_CODE} characters. Shorten it."
        )
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        if error.msg.startswith(("too many nested", "too many statically")):
            return _too_deep()
        return RejectedCode(Category.SYNTAX, f"Line {error.lineno} is not valid Python: {error.msg}.")
    except (RecursionError, MemoryError):
        return _too_deep()
    except ValueError as error:
        return RejectedCode(Category.SYNTAX, f"This is not valid Python: {error}.")
    return _too_deep() if _depth(tree) > MAX_DEPTH else tree


def _too_deep() -> RejectedCode:
    return RejectedCode(Category.TOO_DEEP, "The code is nested too deeply. Use intermediate variables.")


def _depth(tree: ast.AST) -> int:
    """Return the depth of a tree, without recursion, because the tree may be too deep for it."""
    level: list[ast.AST] = [tree]
    depth = 0
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def _find_function(tree: ast.Module) -> ast.FunctionDef | RejectedCode:
    """Return the only function, or a rejection. Only imports and a docstring may accompany the function."""
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
        return RejectedCode(
            Category.NOT_ONE_FUNCTION,
            f"Define exactly one function, not {len(definitions)}. Write helpers as lambdas or inline.",
        )
    if others:
        return RejectedCode(
            Category.NOT_ONE_FUNCTION,
            f"Line {others[0].lineno} is outside the function. Move it inside or omit it; only imports can be outside.",
        )
    return functions[0]


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _faults(
    tree: ast.Module, entities: Entities | None, allowed_imports: tuple[str, ...]
) -> Iterator[RejectedCode]:
    """Yield all violations; the caller reports the first."""
    yield from (_forbidden_syntax(node) for node in ast.walk(tree) if type(node) in _SYNTAX_REPAIRS)
    yield from find_name_faults(tree, allowed_imports)
    if entities is not None:
        yield from find_unknown_keys(tree, entities)


def _forbidden_syntax(node: ast.AST) -> RejectedCode:
    line = getattr(node, "lineno", 1)
    return RejectedCode(
        Category.FORBIDDEN_SYNTAX,
        f"{type(node).__name__} on line {line} is not allowed. {_SYNTAX_REPAIRS[type(node)]}",
    )


def _imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


class _DropAnnotations(ast.NodeTransformer):
    """A transformer that removes annotations, because running them would need names that are not imported."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        plain = ast.Pass() if node.value is None else ast.Assign(targets=[node.target], value=node.value)
        return self.generic_visit(ast.copy_location(plain, node))
