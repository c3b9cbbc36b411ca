"""Upper limits on the length of a file and of a function."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.shape.sources import facts_of, name_of, python_files

FILE_LINES: Final = 400
FUNCTION_LINES: Final = 60


@cache
def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def long_files() -> Iterator[str]:
    for path in python_files():
        if lines_of(path) > FILE_LINES:
            yield f"{name_of(path)}: {lines_of(path)}"


def long_functions() -> Iterator[str]:
    for path in python_files():
        for name, lines in facts_of(path).functions:
            if lines > FUNCTION_LINES:
                yield f"{name_of(path)}: {name}: {lines}"


def test_no_file_is_too_long() -> None:
    assert list(long_files()) == []


def test_no_function_is_too_long() -> None:
    assert list(long_functions()) == []
