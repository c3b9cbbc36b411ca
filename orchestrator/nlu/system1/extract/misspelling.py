"""Recognition of misspelled names: of days, months, and a slot's own values."""

from collections.abc import Collection

from rapidfuzz.distance import OSA

SHORTEST_MISSPELT = 6
"""Minimum letters of a name whose misspellings are corrected."""
_LONG = 8
"""Minimum length of a name that can have two misspellings."""


def spell(word: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the names most similar to a misspelled word. Empty for a correctly spelled word."""
    if word in names or word.removesuffix("s") in names:
        return ()
    most = 2 if len(word) >= _LONG else 1
    near = {name: OSA.distance(word, name, score_cutoff=most) for name in sorted(names)}
    least = min(near.values(), default=most + 1)
    return tuple(name for name, distance in near.items() if distance == least <= most)
