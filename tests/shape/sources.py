"""The files of this repository, as its measures read them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[2]
NOT_OURS: Final = {"__pycache__", "build", "dist", "node_modules"}


def files(*folders: str) -> Iterator[Path]:
    """Yield the files below these folders in order, or below all that are not hidden."""
    roots = [REPOSITORY / folder for folder in folders] if folders else [REPOSITORY]
    for root in roots:
        yield from _below(root)


def python_files(*folders: str) -> Iterator[Path]:
    return (path for path in files(*folders) if path.suffix == ".py")


@cache
def tree_of(path: Path) -> ast.Module:
    """Parse a file once for all measures."""
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    """Name a file as people write it, from the repository's root."""
    return path.relative_to(REPOSITORY).as_posix()


def _below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in NOT_OURS or path.name.endswith(".egg-info"):
            continue
        if path.is_dir():
            yield from _below(path)
        else:
            yield path
