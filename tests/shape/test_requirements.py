"""Every cited requirement is defined in `docs/requirements.md`, and a test cites every defined requirement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from tests.shape.sources import REPOSITORY, files, name_of

PAGE = REPOSITORY / "docs" / "requirements.md"
TEXTS = {".py", ".md", ".yaml", ".yml", ".sql", ".lua", ".j2", ".toml"}
TESTS = ("tests", "domains/travel/evaluations", "domains/analytics/evaluations")
GROUPS = "FS|IR|PL|AM|ST|AG|NL|PX|RS|CO|IF|RT|UI"
CITED = re.compile(rf"\b({GROUPS})-(\d+)(?: … (?:{GROUPS})-(\d+))?\b")
DEFINED = re.compile(rf"^- \*\*((?:{GROUPS})-\d+)\*\* \S", re.MULTILINE)
NOT_BUILT = re.compile(rf"^- ((?:{GROUPS})-\d+)$", re.MULTILINE)


def citations(text: str) -> Iterator[str]:
    """Yield the requirement IDs in a text. `RT-1 … RT-4` stands for four."""
    for group, first, last in CITED.findall(text):
        yield from (f"{group}-{number}" for number in range(int(first), int(last or first) + 1))


@cache
def cited_in(*folders: str) -> dict[str, str]:
    """Return the requirement IDs that these folders cite, each with a citing file."""
    return {
        name: name_of(path)
        for path in files(*folders)
        if path != PAGE and path.suffix in TEXTS
        for name in citations(path.read_text(encoding="utf-8"))
    }


def defined() -> list[str]:
    return DEFINED.findall(PAGE.read_text(encoding="utf-8"))


def not_built() -> set[str]:
    return set(NOT_BUILT.findall(PAGE.read_text(encoding="utf-8")))


def in_order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (name[:2], int(name[3:])))


def test_each_requirement_is_defined_once() -> None:
    names = defined()

    assert len(names) == len(set(names))


def test_what_is_cited_is_defined() -> None:
    cited = cited_in()
    unknown = in_order(cited.keys() - set(defined()))

    assert not unknown, [f"{name} in {cited[name]}" for name in unknown]


def test_what_is_defined_is_proved_by_a_test_or_not_built() -> None:
    unproved = in_order(set(defined()) - cited_in(*TESTS).keys() - not_built())

    assert not unproved, f"cited by no test: {unproved}"


def test_what_a_test_proves_is_built() -> None:
    proved = cited_in(*TESTS)
    stale = in_order(not_built() & proved.keys())

    assert not stale, [f"{name} is proved in {proved[name]}: take it off the list" for name in stale]


def test_what_is_not_built_is_defined() -> None:
    assert not_built() <= set(defined())


def test_a_range_cites_all_between() -> None:
    """The text is assembled here, because this file is searched as well."""
    text = "RT" + "-2 … RT" + "-4, PX" + "-9"

    assert list(citations(text)) == ["RT" + "-2", "RT" + "-3", "RT" + "-4", "PX" + "-9"]
