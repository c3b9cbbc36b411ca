"""Annotated dialogues whose users choose a row by its name."""

from __future__ import annotations

from pathlib import Path

import orjson

from parley.evaluation.dialogues.telling import Telling
from tests.unit.parley.evaluation.test_annotated_dialogues import REFERRING, TAKEN, act, data, measure, user

__all__ = ["data"]

NAMED = [
    *REFERRING["turns"][:2],
    user("I prefer the Old Mill.", "FindTable", TAKEN, act("SELECT")),
    *REFERRING["turns"][7:12],
]


async def test_agreement_chooses_the_row_that_it_names(data: Path, tmp_path: Path) -> None:
    """IR-5: and not the first one, though who understands has heard a yes and no name."""
    (data / "dialogues.jsonl").write_bytes(orjson.dumps({**REFERRING, "turns": NAMED}))
    figures = await measure(data, tmp_path, Telling.SAID)
    assert (figures["misses"], figures["reached"]) == ([], 1.0)
