"""The repository's files, for the shape tests."""

from __future__ import annotations

import ast
import gc
import marshal
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).parents[2]
_KEPT: Final = REPOSITORY / ".tmp" / f"facts.{sys.implementation.cache_tag}"
NOT_OURS: Final = {"__pycache__", "build", "dist", "node_modules"}


def files(*folders: str) -> Iterator[Path]:
    """Yield the files below these folders in order, or below all folders that are not hidden."""
    roots = [REPOSITORY / folder for folder in folders] if folders else [REPOSITORY]
    for root in roots:
        yield from _below(root)


def python_files(*folders: str) -> Iterator[Path]:
    return (path for path in files(*folders) if path.suffix == ".py")


@dataclass(frozen=True, slots=True)
class Facts:
    """Names in a Python file.

    `functions`: functions with their lines. `given`: assigned names. `imported`: full module paths. `read`:
    attributes. `named`: used variables and arguments. `texts`: strings.
    """

    functions: tuple[tuple[str, int], ...]
    given: frozenset[str]
    imported: frozenset[str]
    read: frozenset[str]
    named: frozenset[str]
    texts: frozenset[str]


def facts_of(path: Path) -> Facts:
    """Return the facts of a file in `python_files`. Each file is read once for all tests."""
    return _facts()[path]


@cache
def _facts() -> dict[Path, Facts]:
    """Read all files, except unchanged files with stored facts."""
    kept: dict[bytes, tuple[Any, ...]] = marshal.loads(_KEPT.read_bytes()) if _KEPT.exists() else {}
    reader = Path(__file__).read_bytes()
    keys = {path: sha256(reader + path.read_bytes()).digest() for path in python_files()}
    found = {path: Facts(*kept[key]) if key in kept else _read(path) for path, key in keys.items()}
    ours = os.access(next(each for each in _KEPT.parents if each.exists()), os.W_OK)
    if ours and kept.keys() != {*keys.values()}:
        _KEPT.parent.mkdir(exist_ok=True)
        new = _KEPT.with_name(f"{_KEPT.name}-{os.getpid()}")
        parts = {
            keys[path]: tuple(getattr(facts, each.name) for each in fields(facts))
            for path, facts in found.items()
        }
        new.write_bytes(marshal.dumps(parts))
        new.replace(_KEPT)
    return found


def _read(path: Path) -> Facts:
    """Read and release each tree, because all trees together would take half a gigabyte."""
    functions = list[tuple[str, int]]()
    given, imported, read, named, texts = (set[str]() for _ in range(5))
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Name(id=name, ctx=context):
                named.add(name)
                if isinstance(context, ast.Store):
                    given.add(name)
            case ast.Attribute(attr=name, ctx=context):
                (given if isinstance(context, ast.Store) else read).add(name)
            case ast.Constant(value=str(text)):
                texts.add(text)
            case ast.arg(arg=name):
                named.add(name)
                given.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                given.add(name)
                functions.append((name, (node.end_lineno or node.lineno) - node.lineno + 1))
            case ast.ClassDef(name=name):
                given.add(name)
            case ast.Import() | ast.ImportFrom():
                imported.update(_modules_of(node))
            case _:
                pass
    parts = (frozenset(each) for each in (given, imported, read, named, texts))
    return Facts(tuple(functions), *parts)


def _modules_of(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if node.module and not node.level else []


def tree_of(path: Path) -> ast.Module:
    """Parse a file without garbage collection, because a tree has no cycles."""
    was_looked_for = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        if was_looked_for:
            gc.enable()


def name_of(path: Path) -> str:
    """Return a file's path relative to the repository root."""
    return path.relative_to(REPOSITORY).as_posix()


def _below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in NOT_OURS or path.name.endswith(".egg-info"):
            continue
        if path.is_dir():
            yield from _below(path)
        else:
            yield path
