"""Targets of references in the documentation: pages, headings, files, tests."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.cases import for_each
from tests.unit.parley.documented import ROOT

PAGES = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))
BASES = (ROOT, ROOT / "orchestrator", ROOT / "orchestrator" / "adapters", ROOT / "tests" / "integration")
"""Folders from which a path may start, in addition to its page. Pages mostly refer to the library."""
_LINK = re.compile(r"\]\((?!\w+:)([^)\s]*)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|md|sql|lua|yaml|yml|json|toml|js|sh|j2))`")
_TEST = re.compile(r"\btest_\w+\b(?!\.py)(?!\w)")


def _anchors(page: Path) -> list[str]:
    """Return the fragments of a page's headings."""
    headings = _HEADING.findall(page.read_text(encoding="utf-8"))
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


@cache
def _tests() -> frozenset[str]:
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    return frozenset(name for text in sources for name in re.findall(r"def (test_\w+)", text))


def broken_links(page: Path, text: str) -> list[str]:
    """Return relative links of a page without a target."""
    broken: list[str] = []
    for link in _LINK.findall(text):
        path, _, fragment = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (fragment and fragment not in _anchors(target)):
            broken.append(link)
    return broken


def missing_files(page: Path, text: str) -> list[str]:
    """Return paths of missing files that a page mentions."""
    bases = (*BASES, page.parent)
    return [name for name in _FILE.findall(text) if not any((base / name).is_file() for base in bases)]


@for_each("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_points_at_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert broken_links(page, text) == []
    assert missing_files(page, text) == []
    files = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(_TEST.findall(text)) <= _tests() | files


def test_what_is_not_there_would_be_found() -> None:
    page = ROOT / "docs" / "page.md"
    text = "[a](nowhere.md), [b](../README.md#no-such-heading), [c](plans.md), `agent/nowhere.py`, `agent/running.py`"

    assert broken_links(page, text) == ["nowhere.md", "../README.md#no-such-heading"]
    assert missing_files(page, text) == ["agent/nowhere.py"]
