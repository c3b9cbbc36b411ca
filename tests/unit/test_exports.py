"""`parley`'s exports for authors of domains."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import parley

SOURCE = Path(parley.__file__).read_text(encoding="utf-8")


def named_for_type_checkers() -> set[str]:
    tree = ast.parse(SOURCE)
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("orchestrator.")
        for alias in node.names
    }


def test_every_name_is_there_for_programs_and_for_type_checkers() -> None:
    assert set(dir(parley)) == named_for_type_checkers()
    assert all(getattr(parley, name) is not None for name in dir(parley))


def test_another_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Postgres'"):
        _ = parley.Postgres  # type: ignore[attr-defined]
