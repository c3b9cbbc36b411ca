"""The generated documentation pages are current."""

from __future__ import annotations

from parley.reference_pages import PAGES
from tests.cases import for_each
from tests.shape.sources import REPOSITORY


@for_each("name", PAGES)
def test_a_page_is_what_the_code_makes(name: str) -> None:
    page = REPOSITORY / "docs" / name

    assert page.read_text(encoding="utf-8") == PAGES[name](), "stale: run `make docs`"
