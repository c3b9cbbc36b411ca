"""The generated pages of the documentation are current."""

from __future__ import annotations

import pytest

from parley.reference_pages import PAGES
from tests.shape.sources import REPOSITORY


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_makes(name: str) -> None:
    page = REPOSITORY / "docs" / name

    assert page.read_text(encoding="utf-8") == PAGES[name](), "stale: run `make docs`"
