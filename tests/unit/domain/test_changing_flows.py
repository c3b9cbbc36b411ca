"""Mistakes in declarations of the flow that a flow changes (IR-4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.domain.factories import ONTOLOGY, edit, write_domain
from tests.unit.domain.test_mistakes import find


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ("bok_flight", "did you mean 'book_flight'?"),
        ("search_flights", "should name another flow"),
        ("book_flight", "needs `confirm: true`"),
    ],
)
def test_a_flow_changes_another_one_after_it_has_asked(tmp_path: Path, changes: str, words: str) -> None:
    """IR-4"""
    ontology = edit(ONTOLOGY, ("    intent: Read\n", f"    intent: Read\n    changes: {changes}\n"))
    found = find(write_domain(tmp_path, {"ontology.yaml": ontology}))
    assert words in found["ontology.yaml: flows.search_flights.changes"]
