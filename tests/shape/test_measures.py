"""How big things are and what they are called, held as counts.

`BOUNDS` says how many offences are let pass of each kind. A bound is only ever lowered; at 0 the rule holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.shape.sources import facts_of, files, name_of, python_files

FILE_LINES: Final = 350
FUNCTION_LINES: Final = 60
FILES_IN_A_FOLDER: Final = 16
TOTAL_LINES: Final = 58_000

BOUNDS: Final = {
    "lines of Python outside the tests, over the total": 26_500,
    "files that are too long": 0,
    "functions that are too long": 0,
    "folders that are too full": 0,
    "names with a word that was given up": 0,
    "files that are named by a word that was given up": 0,
}


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# No name has one of these words in it.
GIVEN_UP: Final = words("""
    admission asides doors farm freshener hearing nursery papers patience presence pressure pulse
    rehearsal rehearse sightings situation standing story stray strays uptake
""")
# These are plain English within a name, but no file is called just this.
GIVEN_UP_FOR_FILES: Final = GIVEN_UP | words("""
    bury carry doing gate gathering hashed hints home host keeping kinds locked looking making measuring planted
    remember roles settle shapes shown terms things tidying unknown yes_no
""")
# The database's roles and the roles of processes are called so by everybody.
RIGHTLY_NAMED: Final = frozenset({"roles.py", "test_roles.py"})
# A standing order is one; `patience_s` is a key of domain.yaml.
RIGHTLY_SAID: Final = re.compile(r"standing_orders?|patience_s", re.IGNORECASE)

_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")


@cache
def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def words_of(name: str) -> list[str]:
    """Split a name at its underscores and capitals."""
    return [word.lower() for word in _WORD.findall(RIGHTLY_SAID.sub("", name))]


def lines_over_the_total() -> list[str]:
    sizes = Counter[str]()
    for path in python_files():
        sizes[name_of(path).split("/")[0]] += lines_of(path)
    del sizes["tests"]
    over = sum(sizes.values()) - TOTAL_LINES
    return [f"{sum(sizes.values())} lines: {dict(sizes.most_common())}"] * max(over, 0)


def long_files() -> Iterator[str]:
    for path in python_files():
        if lines_of(path) > FILE_LINES:
            yield f"{name_of(path)}: {lines_of(path)}"


def long_functions() -> Iterator[str]:
    for path in python_files():
        for name, lines in facts_of(path).functions:
            if lines > FUNCTION_LINES:
                yield f"{name_of(path)}: {name}: {lines}"


def full_folders() -> Iterator[str]:
    for folder, count in Counter(path.parent for path in python_files()).items():
        if count > FILES_IN_A_FOLDER:
            yield f"{name_of(folder)}: {count}"


def given_up_names() -> Iterator[str]:
    for path in python_files():
        for name in sorted(facts_of(path).given):
            if GIVEN_UP.intersection(words_of(name)):
                yield f"{name_of(path)}: {name}"


def given_up_files() -> Iterator[str]:
    """Look at folders too, and at SQL and Lua, whose files are named statements."""
    places = {path for path in files() if path.suffix in {".py", ".sql", ".lua", ".md", ".yaml"}}
    places |= {path.parent for path in places}
    for path in sorted(places):
        if path.name not in RIGHTLY_NAMED and (
            path.stem.removeprefix("test_") in GIVEN_UP_FOR_FILES
            or GIVEN_UP.intersection(words_of(path.stem))
        ):
            yield name_of(path)


MEASURES: Final = {
    "lines of Python outside the tests, over the total": lines_over_the_total,
    "files that are too long": long_files,
    "functions that are too long": long_functions,
    "folders that are too full": full_folders,
    "names with a word that was given up": given_up_names,
    "files that are named by a word that was given up": given_up_files,
}


@pytest.mark.parametrize("measure", BOUNDS)
def test_the_bound_holds(measure: str) -> None:
    found = list(MEASURES[measure]())

    assert len(found) <= BOUNDS[measure], f"{len(found)} {measure}:\n" + "\n".join(dict.fromkeys(found))


def test_names_are_split_into_words() -> None:
    assert words_of("_HTTPHeartbeat_file2") == ["http", "heartbeat", "file"]
