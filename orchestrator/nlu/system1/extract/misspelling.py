"""Recognition of misspelled names: names of days, months and slot values."""

from collections.abc import Collection

from rapidfuzz.distance import OSA

SHORTEST_MISSPELT = 6
"""Minimum length of a name for the correction of misspellings, in letters."""
_LONG = 8
"""Minimum length of a name for the correction of two misspelled letters, in letters."""


def spell(word: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the names most similar to a misspelled word, or nothing for a correctly spelled word."""
    if word in names or word.removesuffix("s") in names:
        return ()
    most = 2 if len(word) >= _LONG else 1
    near = {name: OSA.distance(word, name, score_cutoff=most) for name in sorted(names)}
    least = min(near.values(), default=most + 1)
    return tuple(name for name, distance in near.items() if distance == least <= most)
