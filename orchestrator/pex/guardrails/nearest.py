"""The known name nearest to an unknown one, for a sentence that repairs."""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz import fuzz, process, utils

NEAR_ENOUGH = 70.0


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar known name, or None when none is similar."""
    found = process.extractOne(
        name, sorted(known), scorer=fuzz.ratio, processor=utils.default_process, score_cutoff=NEAR_ENOUGH
    )
    return found[0] if found else None
