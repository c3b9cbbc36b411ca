"""Numbers in the README and on the performance page match the stored results."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers.tables import PAGES, read_results, replace_section


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_the_stored_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert text == replace_section(text, PAGES[page](read_results())), (
        "stale: `python -m benchmarks.peers --draw yes`"
    )
