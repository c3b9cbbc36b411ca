"""Limits on the code path of a booking turn: files, calls between files, depth."""

from __future__ import annotations

from typing import Final

from tests.shape.turn_path import follow_turn

# Upper limits.
FILES: Final = 82
CROSSINGS: Final = 286
DEPTH: Final = 20


def test_a_turn_is_short_enough_to_be_followed() -> None:
    path = follow_turn()

    assert len(path.calls) <= FILES, path.report(every=True)
    assert path.crossings.total() <= CROSSINGS, path.report(every=True)
    assert path.depth <= DEPTH, path.report()
